"""People annotate what a judge judged: they get the same questions, blind to model and judge, in a browser, in Label
Studio or in a CSV file.

    from weft.judge_eval.annotation import collect_scores
    collect_scores(annotations)  # {(sample, turn, metric): {annotator: share of full marks}}
"""

from weft.judge_eval.agreement.pairs import collect_scores

__all__ = ["collect_scores"]
