"""`weave-derive`: chess positions by an independent program's rules, puzzles by a solver that sees the images alone."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from weft.building.build import run_build
from weft.building.draft import Row
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import find_mentions
from weft_recipes.derive.chess_board import BoardStyle, draw_board
from weft_recipes.derive.chess_dialogues import describe_move, plan_chess, read_move
from weft_recipes.derive.chess_rules import (
    START,
    count_material,
    is_check,
    is_checkmate,
    list_moves,
    name_square,
    other,
    play,
    read_fen,
    write_fen,
)
from weft_recipes.derive.plan import PlannedTurn
from weft_recipes.derive.recipe import keeps_meaning

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PASSING = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
PROMOTING = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"


def build(out: Path, seeds: int = 12, models: Mapping[str, Any] | None = None, **options: Any) -> list[Row]:
    outcome = asyncio.run(run_build(BuildRequest("weave-derive", out, models or {}, seeds, options=options)))
    assert outcome.reason is None and not outcome.failed
    return list(read_rows(out))


def count_leaves(fen: str, depth: int) -> int:
    def walk(position: Any, left: int) -> int:
        if not left:
            return 1
        return sum(walk(play(position, move), left - 1) for move in list_moves(position))

    return walk(read_fen(fen), depth)


@pytest.mark.parametrize(
    ("fen", "depth", "leaves"),  # counts that every chess program agrees on
    [(START, 3, 8902), (KIWIPETE, 2, 2039), (PASSING, 3, 2812), (PROMOTING, 2, 496)],
)
def test_legal_moves_are_those_that_chess_programs_count(fen: str, depth: int, leaves: int):
    assert count_leaves(fen, depth) == leaves


def test_positions_and_answers_agree_with_an_independent_program():
    chess = pytest.importorskip("chess", reason="python-chess is not installed")
    for seed in range(40):
        planned = plan_chess(Random(f"dialogue {seed}"), 3 + seed % 2)
        compare = next(turn for turn in planned.plan.turns if turn.kind == "compare")
        moves = [turn for turn in planned.plan.turns if turn.makes is not None]
        for turn in moves:
            board = chess.Board(turn.gold["before"])
            assert board.is_valid() and chess.Move.from_uci(turn.gold["move"]) in board.legal_moves
            board.push_uci(turn.gold["move"])
            assert board.board_fen() == turn.gold["fen"].split()[0]
        right = [turn.makes for turn in moves if turn.kind == "alternative" and is_right(chess, planned.question, turn)]
        if planned.question == "material":
            gains = {turn.makes: material(chess, turn) for turn in moves if turn.kind == "alternative"}
            right = [number for number, gain in gains.items() if gain == max(gains.values())]
        assert right == [compare.gold["image"]]
        assert compare.answer.startswith(f"Image #{right[0]}:")


def after(chess: Any, turn: Any) -> Any:
    board = chess.Board(turn.gold["before"])
    board.push_uci(turn.gold["move"])
    return board


def material(chess: Any, turn: Any) -> int:
    board = after(chess, turn)
    values = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
    return sum(
        value * (len(board.pieces(piece, not board.turn)) - len(board.pieces(piece, board.turn)))
        for piece, value in values.items()
    )


def is_right(chess: Any, question: str, turn: Any) -> bool:
    board = after(chess, turn)
    end = chess.parse_square(turn.gold["move"][2:4])
    if question == "checkmate":
        return bool(board.is_checkmate())
    if question == "check":
        return bool(board.is_check())
    if question == "safe":
        takes = [move for move in board.legal_moves if move.to_square == end or board.is_en_passant(move)]
        return not takes
    return False


def test_a_request_spells_a_move_out():
    position = read_fen(KIWIPETE)
    assert describe_move(position, read_move("e5f7")) == "having White's knight on e5 capture the pawn on f7"
    castle = "castling: moving White's king from e1 to g1 and the rook from h1 to f1"
    assert describe_move(position, read_move("e1g1")) == castle
    promoting = read_fen(PROMOTING)
    words = "having Black's pawn on g2 capture the knight on h1, where it becomes a queen"
    assert describe_move(promoting, read_move("g2h1q")) == words
    passing = read_fen("8/8/8/3pP3/8/8/8/4K2k w - d6 0 1")
    words = "having White's pawn on e5 capture the pawn on d5 in passing, so that it stands on d6"
    assert describe_move(passing, read_move("e5d6")) == words


def test_only_what_a_move_changes_is_drawn_anew():
    position = read_fen(START)
    for is_flipped in (False, True):
        style = BoardStyle(is_flipped=is_flipped, side=400)
        first, second = (
            np.asarray(draw_board(one, style), int) for one in (position, play(position, read_move("g1f3")))
        )
        rows, columns = np.nonzero(np.abs(first - second).sum(axis=2))
        edge, cell = 16, 46
        squares = {((row - edge) // cell, (column - edge) // cell) for row, column in zip(rows, columns, strict=True)}
        assert squares == ({(0, 1), (2, 2)} if is_flipped else {(7, 6), (5, 5)})


def test_a_builds_dialogues_compare_alternatives_and_repeat_exactly(tmp_path: Path):
    rows = build(tmp_path / "a", side=192)
    assert [row.outcome for row in rows] == ["kept"] * 12
    domains = {row.draft.domain for row in rows if row.draft}
    assert domains == {"chess_game", "visual_jigsaw"}
    for row in rows:
        assert row.draft
        compare = next(turn for turn in row.draft.turns if turn.kind == "compare")
        alternatives = [turn.makes for turn in row.draft.turns if turn.kind == "alternative"]
        mentioned = find_mentions(compare.text)
        assert [number for number in mentioned if number != 1] == alternatives and len(alternatives) in (3, 4)
    assert build(tmp_path / "b", side=192) == rows


def test_a_solver_that_sees_the_images_alone_finds_the_piece_that_fits(tmp_path: Path):
    rows = build(tmp_path, seeds=25, domains="jigsaw", side=192)
    blobs = Blobs(tmp_path / "blobs")
    for row in rows:
        assert row.draft
        filled = [
            np.asarray(Pillow.open(blobs.path(image.digest)).convert("RGB"), int) for image in row.draft.images[1:]
        ]
        inside = np.any([np.abs(one - filled[0]).sum(axis=2) > 0 for one in filled[1:]], axis=0)
        top, bottom = np.nonzero(inside.any(axis=1))[0][[0, -1]]
        left, right = np.nonzero(inside.any(axis=0))[0][[0, -1]]
        seams = [measure_steps(one, top, bottom, left, right) for one in filled]
        assert "ABCD"[int(np.argmin(seams))] == row.draft.turns[-1].answer


def measure_steps(image: Any, top: int, bottom: int, left: int, right: int) -> float:
    """The mean step over the border of a part of an image."""
    steps: list[Any] = []
    if top > 0:
        steps.append(image[top, left : right + 1] - image[top - 1, left : right + 1])
    if left > 0:
        steps.append(image[top : bottom + 1, left] - image[top : bottom + 1, left - 1])
    if bottom + 1 < len(image):
        steps.append(image[bottom, left : right + 1] - image[bottom + 1, left : right + 1])
    if right + 1 < len(image[0]):
        steps.append(image[top : bottom + 1, right] - image[top : bottom + 1, right + 1])
    return float(np.mean([np.abs(step).mean() for step in steps]))


def test_originals_are_made_into_puzzles_and_a_plain_one_is_dropped(tmp_path: Path):
    folder = tmp_path / "originals"
    folder.mkdir()
    noise = np.random.default_rng(1).integers(0, 255, (60, 90, 3), np.uint8)
    Pillow.fromarray(noise).resize((360, 240)).save(folder / "a.png")
    Pillow.new("RGB", (200, 200), "white").save(folder / "b.png")
    (folder / "c.png").write_bytes(b"no image")
    rows = build(tmp_path / "out", seeds=3, domains="jigsaw", originals=str(folder), side=192)
    assert [row.outcome for row in rows] == ["kept", "dropped", "dropped"]
    assert [row.reason for row in rows[1:]] == ["no puzzle can be made of an original", "an original cannot be read"]


def test_options_that_cannot_work_are_refused_before_anything_is_made(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for options in ({"alternatives": 1}, {"originals": str(tmp_path / "empty")}, {"originals": str(tmp_path / "none")}):
        with pytest.raises(UserError):
            build(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_writers_rewording_is_used_where_it_keeps_the_meaning(tmp_path: Path):
    def rewords(messages: Any, want: str) -> str:
        lines = [line.split(". ", 1)[1] for line in messages[0][1][0].splitlines() if line[:1].isdigit()]
        changed = [f"Please do this: {line}" for line in lines]
        changed[0] = "Do something with Image #1, whatever it may be."
        return json.dumps({"requests": changed})

    rewords.version = "1"  # type: ignore[attr-defined]
    rows = build(tmp_path, seeds=6, models={"writer": rewords}, side=192)
    for row in rows:
        assert row.draft
        assert not row.draft.turns[0].text.startswith("Do something")
        for turn in row.draft.turns[1:]:
            assert turn.text.startswith("Please do this: ") == (turn.kind != "compare"), (
                "answers are exact for its words"
            )
        assert row.counts["rewordings refused"] == 1


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("In Image #1, let White's knight go from g1 to f3.", True),
        ("In Image #2, let White's knight go from g1 to f3.", False),
        ("In Image #1, let White's knight go to f3 at once.", False),
        ("In Image #1, let White's horse go from g1 to f3.", False),
        ("In Image #1, put White's knight on f3 back on g1.", False),
    ],
)
def test_a_rewording_keeps_images_squares_and_pieces(text: str, is_kept: bool):
    asked = "Edit Image #1 by moving White's knight from g1 to f3."
    turn = PlannedTurn(asked, "alternative", 2, words=("White", "g1", "f3", "knight"), order=("g1", "f3"))
    assert keeps_meaning(turn, text, 4) == is_kept


def test_squares_and_positions_are_written_as_they_are_read():
    for fen in (START, KIWIPETE, PROMOTING):
        assert write_fen(read_fen(fen)) == fen
    position = read_fen(START)
    assert count_material(position, "w") == 0 and not is_check(position, "w") and not is_checkmate(position)
    assert name_square(0) == "a1" and name_square(63) == "h8" and other("w") == "b"


def test_settings_of_a_model_that_is_not_there_are_one_line(tmp_path: Path):
    asked = BuildRequest("weave-derive", tmp_path / "out", {}, 1, model_options={"writer.x": "1"})
    with pytest.raises(UserError, match="--model-opt writer.x: say whose it is"):
        asyncio.run(run_build(asked))
