"""Plans dialogues about a chess position: moves that start from it, one image each, and a question that has one answer.

    plan = plan_chess(Random("seed 7"), alternatives=3)
    plan.positions      # what Image #1, Image #2 ... show
    plan.plan.turns     # what is asked, with the exact answer

The question is one of four: which move checkmates, which gives check, where a side is furthest ahead in pieces, where
the piece that has moved cannot be captured. Notation is spelled out: "moving White's knight from g1 to f3".
"""

from collections.abc import Callable, Sequence
from random import Random

from msgspec import Struct

from weft_recipes.derive.chess_rules import (
    EMPTY,
    NAMES,
    START,
    Move,
    Position,
    Side,
    captured_square,
    count_material,
    find_castle,
    is_attacked,
    is_check,
    is_checkmate,
    list_moves,
    name_square,
    other,
    play,
    read_fen,
    square_at,
    without_en_passant,
    write_fen,
)
from weft_recipes.derive.plan import DialoguePlan, PlannedTurn

SIDES = {"w": "White", "b": "Black"}
MAX_GAMES = 200
PLIES = (6, 70)  # of the random game that leads to a position
POINT = "Compared to <image>, {change}, and every other piece is where it was."
PIECE_VALUES = "counting a pawn as 1, a knight or bishop as 3, a rook as 5 and a queen as 9"

Choice = tuple[list[Move], Move, str, str]  # alternatives, the right one, the question, why it is right
Finder = Callable[[Position, list[Move], int, Random], "Choice | None"]


class ChessPlan(Struct, frozen=True):
    """A dialogue about one position."""

    positions: tuple[Position, ...]  # what the images show
    plan: DialoguePlan
    question: str  # its kind


def plan_chess(rng: Random, alternatives: int) -> ChessPlan:
    """Return a dialogue with so many alternatives. Raises RuntimeError if no position is found, which is a defect."""
    wanted = rng.choice(sorted(FINDERS))
    for attempt in range(MAX_GAMES):
        if attempt == MAX_GAMES // 2:
            wanted = "material"  # which nearly every position has
        position, moves = _play_at_random(rng)
        if len(moves) < alternatives:
            continue
        found = FINDERS[wanted](position, moves, alternatives, rng)
        if found is not None:
            return _build_plan(position, found, wanted, rng)
    raise RuntimeError("no position has the alternatives that are wanted")


def describe_move(position: Position, move: Move) -> str:
    """Return a move in words that follow "by": "moving White's knight from g1 to f3"."""
    side = SIDES[position.side]
    name = NAMES[position.board[move.start].lower()]
    start, end = name_square(move.start), name_square(move.end)
    castle = find_castle(position, move)
    if castle:
        rook = "from h to f" if castle in "Kk" else "from a to d"
        rank = start[1]
        rook_words = " ".join(f"{word}{rank}" if len(word) == 1 else word for word in rook.split())
        return f"castling: moving {side}'s king from {start} to {end} and the rook {rook_words}"
    taken = captured_square(position, move)
    words = f"moving {side}'s {name} from {start} to {end}"
    if position.board[taken] != EMPTY:
        victim = NAMES[position.board[taken].lower()]
        words = f"having {side}'s {name} on {start} capture the {victim} on {name_square(taken)}"
        if taken != move.end:
            words += f" in passing, so that it stands on {end}"
    if move.promotion:
        words += f", where it becomes a {NAMES[move.promotion]}"
    return words


def describe_change(position: Position, move: Move) -> str:
    """Return what is different after a move, as a reviewer checks it."""
    side = SIDES[position.side]
    start, end = name_square(move.start), name_square(move.end)
    name = NAMES[move.promotion or position.board[move.start].lower()]
    change = f"{side}'s {name} is on {end}, {start} is empty"
    castle = find_castle(position, move)
    if castle:
        rank = start[1]
        rook_start, rook_end = ("h", "f") if castle in "Kk" else ("a", "d")
        change += f", {side}'s rook is on {rook_end}{rank}, {rook_start}{rank} is empty"
    taken = captured_square(position, move)
    if position.board[taken] != EMPTY:
        change += f", the {NAMES[position.board[taken].lower()]} of {SIDES[other(position.side)]} is gone"
        if taken != move.end:
            change += f" from {name_square(taken)}"
    return change


def list_words(position: Position, move: Move) -> tuple[str, ...]:
    """Return the words without which a request for a move is another one."""
    words = [SIDES[position.side], name_square(move.start), name_square(move.end)]
    words.append(NAMES[position.board[move.start].lower()])
    if move.promotion:
        words.append(NAMES[move.promotion])
    taken = captured_square(position, move)
    if position.board[taken] != EMPTY:
        words += [NAMES[position.board[taken].lower()], name_square(taken)]
    castle = find_castle(position, move)
    if castle:
        rook_ends = ("h", "f") if castle in "Kk" else ("a", "d")
        words += ["rook", *(f"{file}{name_square(move.start)[1]}" for file in rook_ends)]
    return tuple(dict.fromkeys(words))


def _play_at_random(rng: Random) -> tuple[Position, list[Move]]:
    """Return a position of a random game in which captures are likely, and its legal moves."""
    position = read_fen(START)
    plies = rng.randint(*PLIES)
    moves = list_moves(position)
    for _ in range(plies):
        captures = [move for move in moves if position.board[captured_square(position, move)] != EMPTY]
        pool = captures if captures and rng.random() < 0.35 else moves
        after = play(position, rng.choice(pool))
        replies = list_moves(after)
        if not replies:
            break
        position, moves = after, replies
    shown = without_en_passant(position)
    return shown, list_moves(shown)


def _build_plan(position: Position, choice: Choice, question: str, rng: Random) -> ChessPlan:
    moves, right, question_text, reason = choice
    positions = [position]
    turns: list[PlannedTurn] = []
    for number, move in enumerate(moves, start=2):
        positions.append(play(position, move))
        turns.append(_plan_move(position, move, 1, number))
    answer = moves.index(right) + 2
    numbers = range(2, len(moves) + 2)
    listed = f"{', '.join(f'Image #{number}' for number in numbers[:-1])} and Image #{numbers[-1]}"
    gold = {"question": question, "image": answer}
    words = (SIDES[position.side],)
    turns.append(
        PlannedTurn(
            f"Compare {listed}. {question_text}",
            "compare",
            answer=f"Image #{answer}: {reason}",
            words=words,
            gold=gold,
        )
    )
    best = without_en_passant(positions[answer - 1])
    replies = list_moves(best)
    if replies and rng.random() < 0.5:
        reply = rng.choice(replies)
        positions.append(play(best, reply))
        turns.append(_plan_move(best, reply, answer, len(positions), "Go on from the position that you chose. "))
    return ChessPlan(tuple(positions), DialoguePlan("chess_game", tuple(turns)), question)


def _plan_move(position: Position, move: Move, base: int, number: int, opening: str = "") -> PlannedTurn:
    """Return the turn that makes a move in the position of image `base`."""
    source = "GT" if base == 1 else "Image"
    return PlannedTurn(
        f"{opening}Edit Image #{base} by {describe_move(position, move)}.",
        "continue" if opening else "alternative",
        number,
        key_points={f"{source} #{base}": POINT.format(change=describe_change(position, move))},
        words=list_words(position, move),
        order=(name_square(move.start), name_square(move.end)),
        gold={"fen": write_fen(play(position, move)), "before": write_fen(position), "move": _code(move)},
    )


def _code(move: Move) -> str:
    return name_square(move.start) + name_square(move.end) + move.promotion


def _pick(right: Move, wrong: Sequence[Move], alternatives: int, rng: Random) -> list[Move] | None:
    """Return the right move among others, in an order of chance; None if there are too few."""
    if len(wrong) < alternatives - 1:
        return None
    moves = [right, *rng.sample(list(wrong), alternatives - 1)]
    rng.shuffle(moves)
    return moves


def _find_mate(position: Position, moves: list[Move], alternatives: int, rng: Random) -> Choice | None:
    mates = [move for move in moves if is_checkmate(play(position, move))]
    if not mates:
        return None
    right = rng.choice(mates)
    picked = _pick(right, [move for move in moves if move not in mates], alternatives, rng)
    if picked is None:
        return None
    mover, loser = SIDES[position.side], SIDES[other(position.side)]
    king = _king_square(position, other(position.side))
    return picked, right, f"In which one has {mover} checkmated {loser}?", f"{loser}'s king on {king} is checkmated."


def _find_check(position: Position, moves: list[Move], alternatives: int, rng: Random) -> Choice | None:
    loser = other(position.side)
    checks = [move for move in moves if is_check(play(position, move), loser)]
    checks = [move for move in checks if not is_checkmate(play(position, move))]
    quiet = [move for move in moves if not is_check(play(position, move), loser)]
    if not checks:
        return None
    right = rng.choice(checks)
    picked = _pick(right, quiet, alternatives, rng)
    if picked is None:
        return None
    king = _king_square(position, loser)
    question = f"In which one does {SIDES[position.side]} give check?"
    return picked, right, question, f"{SIDES[loser]}'s king on {king} is in check."


def _find_material(position: Position, moves: list[Move], alternatives: int, rng: Random) -> Choice | None:
    """The best one is further ahead than every other one that is shown."""
    gains = {move: count_material(play(position, move), position.side) for move in moves}
    best = max(gains.values())
    right = rng.choice([move for move in moves if gains[move] == best])
    picked = _pick(right, [move for move in moves if gains[move] < best], alternatives, rng)
    if picked is None:
        return None
    side = SIDES[position.side]
    if best == 0:
        standing = "both sides have the same"
    elif best > 0:
        standing = f"{side} is {best} ahead"
    else:
        standing = f"{side} is only {-best} behind"
    question = f"In which one does {side} stand best in material, {PIECE_VALUES}?"
    return picked, right, question, f"{standing}, better than in the others."


def _find_safe(position: Position, moves: list[Move], alternatives: int, rng: Random) -> Choice | None:
    """Just one of the pieces that moved cannot be captured at once."""
    loser = other(position.side)
    safe: list[Move] = []
    lost: list[Move] = []
    for move in moves:
        after = play(position, move)  # a pawn that has just jumped can be captured in passing
        is_lost = any(captured_square(after, reply) == move.end for reply in list_moves(after))
        (lost if is_lost else safe).append(move)
    safe = [move for move in safe if not is_attacked(play(position, move), move.end, loser)]
    if not safe:
        return None
    right = rng.choice(safe)
    picked = _pick(right, lost, alternatives, rng)
    if picked is None:
        return None
    name = NAMES[right.promotion or position.board[right.start].lower()]
    question = f"In which one can {SIDES[loser]} not capture the piece that {SIDES[position.side]} has just moved?"
    return picked, right, question, f"the {name} on {name_square(right.end)} is not attacked."


def _king_square(position: Position, side: Side) -> str:
    return name_square(position.board.index("K" if side == "w" else "k"))


FINDERS: dict[str, Finder] = {
    "check": _find_check,
    "checkmate": _find_mate,
    "material": _find_material,
    "safe": _find_safe,
}


def read_move(code: str) -> Move:
    """Read a move such as e7e8q."""
    return Move(square_at(code[:2]), square_at(code[2:4]), code[4:])
