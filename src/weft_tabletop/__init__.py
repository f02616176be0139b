"""A drawn world with exact truth: pictures made by a program, so that what is right is known; a judge that reads
pixels; and a small unified model that was really trained on it. It needs no key, no network and no GPU."""
