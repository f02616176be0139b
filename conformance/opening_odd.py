"""OpenING: battles that a judge and people saw in different orders. The released agreement does not find them."""

import random
from typing import Any

from conformance.opening import WINNERS, Checkout, Numbers, our_agreement, random_pair
from conformance.report import Report

FLIPPED = {"A": "B", "B": "A", "Tie(A)": "Tie(B)", "Tie(B)": "Tie(A)"}
PAIRS = 40


def flip(record: dict[str, Any]) -> dict[str, Any]:
    winner = FLIPPED[record["winner"]]
    return {**record, "model_A": record["model_B"], "model_B": record["model_A"], "winner": winner}


def orders(released: Checkout, report: Report) -> None:
    """Compare the agreement on files in which a third of the judge's battles are in the other order, and on the same
    files in one order."""
    chance = random.Random(9)
    unseen = released.unseen()
    files: dict[bool, tuple[Numbers, Numbers]] = {False: ({}, {}), True: ({}, {})}
    for number in range(PAIRS):
        judge, human = random_pair(chance, WINNERS, unseen)
        for is_mixed, (theirs, ours) in files.items():
            records = [flip(record) if is_mixed and chance.random() < 0.3 else record for record in judge]
            printed = released.agreement(records, human)
            found = our_agreement(released, records, human, unseen)
            theirs |= {(number, *key): value for key, value in printed.items()}
            ours |= {(number, *key): found[key] for key in printed}
    report.same("orders", f"{PAIRS} random pairs of files in one order", *files[False])
    why = "the script compares battles in the same order alone; weft compares them in either"
    report.same("orders", f"{PAIRS} random pairs of files in both orders", *files[True], why)
