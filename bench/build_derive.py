"""Chess and jigsaw dialogues of `weave-derive`, checked by programs that share no code with it.

    python bench/build_derive.py [--dialogues 5000]

Every position and move is checked by python-chess, every question's answer is worked out by it; every puzzle is solved
from its images alone, by the option whose borders have the smallest steps. Prints what agrees, of how many.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import chess

from building.test_derive import is_right, material, measure_steps
from weft_recipes.derive.chess_dialogues import plan_chess
from weft_recipes.derive.jigsaw import NoPuzzle, make_puzzle
from weft_recipes.derive.puzzle_images import draw_subject


def check_chess(seed: int) -> tuple[str, int, bool]:
    """Return a dialogue's question, its positions, and whether all of it is right."""
    planned = plan_chess(Random(f"bench {seed}"), 3 + seed % 2)
    moves = [turn for turn in planned.plan.turns if turn.makes is not None]
    is_legal = True
    for turn in moves:
        board = chess.Board(turn.gold["before"])
        move = chess.Move.from_uci(turn.gold["move"])
        is_legal = is_legal and board.is_valid() and move in board.legal_moves
        board.push(move)
        is_legal = is_legal and board.board_fen() == turn.gold["fen"].split()[0]
    choices = [turn for turn in moves if turn.kind == "alternative"]
    if planned.question == "material":
        gains = {turn.makes: material(chess, turn) for turn in choices}
        right = [number for number, gain in gains.items() if gain == max(gains.values())]
    else:
        right = [turn.makes for turn in choices if is_right(chess, planned.question, turn)]
    compare = next(turn for turn in planned.plan.turns if turn.kind == "compare")
    return planned.question, len(planned.positions), is_legal and right == [compare.gold["image"]]


def check_puzzle(seed: int, side: int) -> str:
    """Return "right", "wrong", or "none" where an image makes no puzzle."""
    rng = Random(f"bench puzzle {seed}")
    try:
        puzzle = make_puzzle(draw_subject(rng, side), rng, 3 + seed % 2)
    except NoPuzzle:
        return "none"
    filled = [np.asarray(image, int) for image in puzzle.filled]
    inside = np.any([np.abs(one - filled[0]).sum(axis=2) > 0 for one in filled[1:]], axis=0)
    top, bottom = np.nonzero(inside.any(axis=1))[0][[0, -1]]
    left, right = np.nonzero(inside.any(axis=0))[0][[0, -1]]
    steps = [measure_steps(one, top, bottom, left, right) for one in filled]
    return "right" if "ABCD"[int(np.argmin(steps))] == puzzle.answer else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=5000)
    parser.add_argument("--side", type=int, default=192, help="pixels of a puzzle's image")
    asked = parser.parse_args()
    by_question: Counter[tuple[str, bool]] = Counter()
    positions = 0
    for seed in range(asked.dialogues):
        question, count, is_all_right = check_chess(seed)
        by_question[question, is_all_right] += 1
        positions += count
    for question in sorted({question for question, _ in by_question}):
        right, wrong = by_question[question, True], by_question[question, False]
        print(f"chess, {question:<10} {right:>5,} of {right + wrong:,} dialogues right")
    print(f"chess positions checked: {positions:,}")
    puzzles = Counter(check_puzzle(seed, asked.side) for seed in range(asked.dialogues))
    print(f"jigsaw puzzles solved from their images: {puzzles['right']:,} of {puzzles['right'] + puzzles['wrong']:,}")
    print(f"images that make no puzzle: {puzzles['none']:,}")


if __name__ == "__main__":
    main()
