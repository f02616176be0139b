"""ImgEdit-Bench: nine types of single edits, hard single edits (UGE), and dialogues of two or three edits."""

from weft.benchmarks.imgedit.protocol import ImgEdit

__all__ = ["ImgEdit"]
