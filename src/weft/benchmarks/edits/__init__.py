"""What benchmarks of judged single-turn edits share: records in files or tables, outputs in folders, the request,
derived metrics. GEdit-Bench, ImgEdit and RISEBench are made of it."""

from weft.benchmarks.edits.protocol import JudgedEdits

__all__ = ["JudgedEdits"]
