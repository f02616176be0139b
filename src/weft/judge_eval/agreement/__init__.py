"""How far the judge of a run agrees with people or with another judge, and the headline score corrected by people.

    pairs.py         pair a judge's verdicts with scores of the same replies: annotations, another run, or a file
    scores.py        read a file of human scores; convert scores to shares of full marks
    people.py        agreement among annotators
    tables.py        tables of agreement, by metric and by group
    study.py         everything that `weft agree` shows for one run
    several.py       the same over the runs of several models
    second_judge.py  find the runs of a second judge
    corrected.py     the corrected headline score that `weft report --correct` adds
    by_card.py       the judge's bias on its calibration card

Only verdicts that a judge gave are compared. Verdicts by rule and model failures are left out and counted."""
