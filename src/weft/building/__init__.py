"""`weft build`: recipes make multi-turn datasets. Seeds pass steps (write, draw, check, mend) and become dialogues;
every call is journalled, a part that exists is done, and references between turns stay whole."""
