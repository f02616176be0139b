"""How far the judge of a run agrees with people, or with another judge, and what its number is once people have rated
some of it.

    pairs.py       a judge's verdicts beside what others say of the very same: ratings in the journal, another run, a
    file
    scores.py      a file of ratings; scores as shares
    people.py      people among themselves
    tables.py      tables of agreement, by metric and by group
    study.py       all of it, for one run: what `weft agree` shows
    corrected.py   the main number, corrected: what `weft report --correct` adds

Only verdicts that a judge gave are compared: what a rule decided, and a model's failure, are not the judge's, and are
counted apart."""
