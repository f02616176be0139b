"""A drawn world with exact references: a program draws its images, so that every right result is known; a judge reads
pixels; and a small unified model is trained on it. It needs no key, no network and no GPU."""
