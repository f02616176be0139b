"""All pathways in one build on the tabletop: proportions, numbers of images, purity, and duplicates that were planted.

    python bench/build_mixture.py OUT [--seeds 10000]

20% of the edits have a planted fault. Purity is the share of dialogues in which every turn is right: on the tabletop by
what the images show, of chess by python-chess, of puzzles by the smallest steps along the borders. Then copies of 300
dialogues are added: the same, with images that were stored again as JPEG, scaled and brightened, and with some words
changed; those that are found are counted by kind. It goes on where it was stopped.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that spin cost more than they bring

import argparse
import asyncio
import io
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import chess
import numpy as np
from build_grow import FAULTS, ROLES, resident_mb
from msgspec.structs import replace
from PIL import Image as Pil
from PIL import ImageEnhance

from building.test_derive import is_right, material, measure_steps
from weft.building.build import run_build
from weft.building.counts import count_dialogues
from weft.building.draft import Draft, Row
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.building.selection import find_duplicates, iterate_selected
from weft.building.status import read_status
from weft.datasets.perceptual_hash import perceptual_hash
from weft.store.blobs import Blobs
from weft.types import Image
from weft_recipes.shares import WEAVE_100K
from weft_tabletop.building.check_build import find_faults

PLANTED = 100  # dialogues of each kind
SYNONYMS = {"Put": "Place", "Move": "Shift", "Make": "Turn", "Add": "Set", "Remove": "Drop", "In": "Within"}


def build(out: Path, seeds: int) -> None:
    request = BuildRequest("tabletop-100k", out, ROLES, seeds, model_options=FAULTS, test_share=0.02)
    began = time.perf_counter()
    outcome = asyncio.run(run_build(request))
    if outcome.reason is not None:
        raise SystemExit(f"stopped: {outcome.reason}")
    print(outcome.progress.describe())
    print(f"{time.perf_counter() - began:.0f} s, {time.process_time():.0f} CPU s, {resident_mb():.0f} MB at the end")


def show_proportions(out: Path) -> None:
    rows = list(iterate_selected(read_rows(out), find_duplicates(read_rows(out))))
    counts = count_dialogues(rows, WEAVE_100K)
    domains: Counter[str] = Counter()
    for (domain, _), count in counts.groups.items():
        domains[domain] += count
    for domain, count in domains.most_common():
        share = WEAVE_100K.share(domain)
        paper = "-" if share is None else f"{share:.2%}"
        print(f"{domain:<20}{count:>7,}{count / counts.dialogues:>9.2%}   paper {paper}")
    for images, share in WEAVE_100K.images_from.items():
        print(f"{images} or more images{'':<4}{counts.share_from(images):>13.1%}   paper {share:.1%}")
    print(f"{counts.turns / counts.dialogues:.2f} turns, {counts.images / counts.dialogues:.2f} images a dialogue")
    largest = 0.0
    for (domain, kind), count in counts.groups.items():
        share = WEAVE_100K.share(domain, kind)
        if share is not None and domain == "Recall":
            expected = share / (WEAVE_100K.share(domain) or 1) * domains[domain]
            largest = max(largest, abs(count - expected))
    print(f"recall by category: at most {largest:.1f} dialogues from Table 5's shares, of {domains['Recall']:,}")
    status = read_status(out)
    print(f"left out as duplicates: {dict(status.left_out)}; dropped for good: {status.outcomes.get('dropped', 0)}")
    groups: Counter[str] = Counter(row.group for row in read_rows(out))
    tries: Counter[str] = Counter()
    for row in read_rows(out):
        tries[row.group] += 1 + len(row.earlier)
    print("tries a seed: " + ", ".join(f"{name} {tries[name] / count:.2f}" for name, count in groups.items()))


def show_purity(out: Path) -> None:
    blobs = Blobs(out / "blobs")
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in read_rows(out):
        if row.draft is not None:
            total[row.group] += 1
            right[row.group] += is_wholly_right(row, row.draft, blobs)
    for group, count in total.items():
        print(f"purity of {group:<10}{right[group]:>7,} of {count:>7,} ({right[group] / count:.2%})")


def is_wholly_right(row: Row, draft: Draft, blobs: Blobs) -> bool:
    if row.group != "derive":
        return not find_faults(draft, blobs)
    if draft.domain == "chess_game":
        return is_right_chess(draft)
    return is_right_puzzle(draft, blobs)


def is_right_chess(draft: Draft) -> bool:
    moves = [turn for turn in draft.turns if turn.makes is not None]
    for turn in moves:
        board = chess.Board(turn.gold["before"])
        move = chess.Move.from_uci(turn.gold["move"])
        if not board.is_valid() or move not in board.legal_moves:
            return False
        board.push(move)
        if board.board_fen() != turn.gold["fen"].split()[0]:
            return False
    (compare,) = (turn for turn in draft.turns if turn.kind == "compare")
    choices = [turn for turn in moves if turn.kind == "alternative"]
    question = compare.gold["question"]
    if question == "material":
        gains = {turn.makes: material(chess, turn) for turn in choices}
        best = [number for number, gain in gains.items() if gain == max(gains.values())]
    else:
        best = [turn.makes for turn in choices if is_right(chess, question, turn)]
    return best == [compare.gold["image"]]


def is_right_puzzle(draft: Draft, blobs: Blobs) -> bool:
    filled = [np.asarray(decode(blobs, image), int) for image in draft.images[1:]]
    inside = np.any([np.abs(one - filled[0]).sum(axis=2) > 0 for one in filled[1:]], axis=0)
    top, bottom = np.nonzero(inside.any(axis=1))[0][[0, -1]]
    left, right = np.nonzero(inside.any(axis=0))[0][[0, -1]]
    steps = [measure_steps(one, top, bottom, left, right) for one in filled]
    (compare,) = (turn for turn in draft.turns if turn.kind == "compare")
    return compare.answer.strip().startswith("ABCD"[int(np.argmin(steps))])


def decode(blobs: Blobs, image: Image) -> Pil.Image:
    return Pil.open(io.BytesIO(blobs.read(image))).convert("RGB")


def plant(rows: list[Row], blobs: Blobs) -> tuple[list[Row], dict[int, tuple[str, int]]]:
    """Return copies of some dialogues with the kind by which each is to be found, and the seed that it repeats."""
    chance = Random("planted")
    planted: dict[int, tuple[str, int]] = {}
    copies: list[Row] = []
    chosen = chance.sample([row for row in rows if row.group != "derive"], 3 * PLANTED)
    number = max(row.number for row in rows) + 1
    for index, row in enumerate(chosen):
        kind = ("exact", "images", "texts")[index % 3]
        planted[number] = (kind, row.number)
        copies.append(
            replace({"exact": copy_whole, "images": copy_looks, "texts": copy_words}[kind](row, blobs), number=number)
        )
        number += 1
    return copies, planted


def copy_whole(row: Row, blobs: Blobs) -> Row:
    return row


def copy_looks(row: Row, blobs: Blobs) -> Row:
    """The images stored again: as JPEG, scaled, brighter. The words are others."""
    assert row.draft is not None
    prints: list[str] = []
    images: list[Image] = []
    for number, image in enumerate(row.draft.images):
        changed = ImageEnhance.Brightness(decode(blobs, image).resize((80, 80))).enhance(1.08)
        packed = io.BytesIO()
        changed.save(packed, "JPEG", quality=88)
        prints.append(f"{perceptual_hash(Pil.open(packed)):016x}")
        images.append(replace(image, digest=f"{row.number:032x}{number:032x}"))
    turns = tuple(
        replace(turn, text=f"Number {row.number} {index} of the plan.") for index, turn in enumerate(row.draft.turns)
    )
    return replace(row, draft=replace(row.draft, images=tuple(images), turns=turns), prints=tuple(prints))


def copy_words(row: Row, blobs: Blobs) -> Row:
    """Other images, and a word of the requests changed."""
    assert row.draft is not None
    images = tuple(
        replace(image, digest=f"{row.number:032x}{index:032x}") for index, image in enumerate(row.draft.images, 9)
    )
    chance = Random(row.number)
    prints = tuple(f"{chance.getrandbits(64):016x}" for _ in row.prints)
    first = row.draft.turns[0]
    word, *others = first.text.split()
    turns = (replace(first, text=" ".join([SYNONYMS.get(word, "Now"), *others])), *row.draft.turns[1:])
    return replace(row, draft=replace(row.draft, images=images, turns=turns), prints=prints)


def show_duplicates(out: Path) -> None:
    blobs = Blobs(out / "blobs")
    natural = find_duplicates(read_rows(out))
    rows = list(iterate_selected(read_rows(out), natural))
    copies, planted = plant(rows, blobs)
    began = time.perf_counter()
    left_out = find_duplicates([*rows, *copies])
    seconds = time.perf_counter() - began
    found: Counter[str] = Counter()
    for seed, (kind, of) in planted.items():
        one = left_out.get(seed)
        found[kind] += one is not None and one.of == of
    wrong = [seed for seed in left_out if seed not in planted]
    print(
        "planted and found: " + ", ".join(f"{kind} {found[kind]} of {PLANTED}" for kind in ("exact", "images", "texts"))
    )
    print(f"others left out: {len(wrong)}; {len(rows) + len(copies):,} dialogues compared in {seconds:.1f} s")
    kinds: Counter[str] = Counter(one.kind for one in natural.values())
    print(f"among the dialogues as they were built: {dict(kinds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=10_000)
    asked: Any = parser.parse_args()
    build(asked.out, asked.seeds)
    show_proportions(asked.out)
    show_purity(asked.out)
    show_duplicates(asked.out)


if __name__ == "__main__":
    main()
