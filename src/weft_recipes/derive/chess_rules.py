"""The rules of chess, as far as a single position goes: legal moves, check, checkmate, material. Pure functions.

    position = read_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")
    moves = list_moves(position)
    after = play(position, moves[0])

Squares count from 0 (a1) to 63 (h8). Pieces are letters as in FEN: `P` is a white pawn, `p` a black one, `.` an empty
square. Draws by repetition or by fifty moves are left out: no single position shows them.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Side = Literal["w", "b"]

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
VALUES = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9, "k": 0}
NAMES = {"p": "pawn", "n": "knight", "b": "bishop", "r": "rook", "q": "queen", "k": "king"}
EMPTY = "."
STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
LEAPS = ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1))
SLIDES = {"b": DIAGONAL, "r": STRAIGHT, "q": STRAIGHT + DIAGONAL}
CASTLES = {  # right -> the king's squares, the rook's squares, squares that must be empty
    "K": ((4, 6), (7, 5), (5, 6)),
    "Q": ((4, 2), (0, 3), (1, 2, 3)),
    "k": ((60, 62), (63, 61), (61, 62)),
    "q": ((60, 58), (56, 59), (57, 58, 59)),
}
RIGHTS_LOST = {0: "Q", 4: "KQ", 7: "K", 56: "q", 60: "kq", 63: "k"}  # once a piece leaves or enters this square


class Position(Struct, frozen=True):
    """A board, and what else decides which moves are legal."""

    board: str  # 64 letters from a1 to h8
    side: Side = "w"  # to move
    castling: str = "KQkq"
    en_passant: int = -1  # the square that a pawn has just jumped over; -1: none

    def side_at(self, square: int) -> Side | None:
        """Return whose piece stands on a square."""
        piece = self.board[square]
        if piece == EMPTY:
            return None
        return "w" if piece.isupper() else "b"


class Move(Struct, frozen=True):
    """One move. Castling is a move of the king."""

    start: int
    end: int
    promotion: str = ""  # a lower-case letter


def read_fen(fen: str) -> Position:
    """Read a position in Forsyth-Edwards notation."""
    rows, side, castling, en_passant = fen.split()[:4]
    board = ""
    for row in reversed(rows.split("/")):
        for letter in row:
            board += EMPTY * int(letter) if letter.isdigit() else letter
    whose: Side = "w" if side == "w" else "b"
    return Position(board, whose, castling.strip("-"), -1 if en_passant == "-" else square_at(en_passant))


def write_fen(position: Position) -> str:
    """Return a position in Forsyth-Edwards notation, with clocks at their start."""
    rows: list[str] = []
    for rank in range(7, -1, -1):
        row = ""
        for letter in position.board[rank * 8 : rank * 8 + 8]:
            if letter != EMPTY:
                row += letter
            elif row and row[-1].isdigit():
                row = row[:-1] + str(int(row[-1]) + 1)
            else:
                row += "1"
        rows.append(row)
    passed = "-" if position.en_passant < 0 else name_square(position.en_passant)
    return f"{'/'.join(rows)} {position.side} {position.castling or '-'} {passed} 0 1"


def name_square(square: int) -> str:
    """Return a square's name, such as e4."""
    return "abcdefgh"[square % 8] + str(square // 8 + 1)


def square_at(name: str) -> int:
    """Return a square's number by its name."""
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def other(side: Side) -> Side:
    """Return the opponent."""
    return "b" if side == "w" else "w"


def list_moves(position: Position) -> list[Move]:
    """Return all legal moves, sorted."""
    moves = [move for move in _list_reachable(position) if not is_check(play(position, move), position.side)]
    moves += _list_castles(position)
    return sorted(moves, key=lambda move: (move.start, move.end, move.promotion))


def is_check(position: Position, side: Side) -> bool:
    """Return whether the king of a side is attacked."""
    king = position.board.find("K" if side == "w" else "k")
    return king >= 0 and is_attacked(position, king, other(side))


def is_checkmate(position: Position) -> bool:
    """Return whether the side to move is checkmated."""
    return is_check(position, position.side) and not list_moves(position)


def count_material(position: Position, side: Side) -> int:
    """Return what a side is ahead: pawn 1, knight and bishop 3, rook 5, queen 9."""
    total = 0
    for letter in position.board:
        if letter != EMPTY:
            total += VALUES[letter.lower()] if letter.isupper() == (side == "w") else -VALUES[letter.lower()]
    return total


def play(position: Position, move: Move) -> Position:
    """Return the position after a move."""
    board = list(position.board)
    piece = board[move.start]
    board[move.start] = EMPTY
    board[move.end] = piece
    if move.promotion:
        board[move.end] = move.promotion.upper() if position.side == "w" else move.promotion
    if piece in "Pp" and move.end == position.en_passant:
        board[captured_square(position, move)] = EMPTY
    castle = find_castle(position, move)
    if castle:
        rook_start, rook_end = CASTLES[castle][1]
        board[rook_end] = board[rook_start]
        board[rook_start] = EMPTY
    lost = RIGHTS_LOST.get(move.start, "") + RIGHTS_LOST.get(move.end, "")
    castling = "".join(right for right in position.castling if right not in lost)
    jumped = -1
    if piece in "Pp" and abs(move.end - move.start) == 16:
        jumped = (move.start + move.end) // 2
    return Position("".join(board), other(position.side), castling, jumped)


def captured_square(position: Position, move: Move) -> int:
    """Return the square from which a move takes a piece; it is the move's end but for en passant."""
    if position.board[move.start] in "Pp" and move.end == position.en_passant:
        return move.end - 8 if position.side == "w" else move.end + 8
    return move.end


def find_castle(position: Position, move: Move) -> str:
    """Return the right that a castling move uses; empty for any other move."""
    if position.board[move.start] not in "Kk" or abs(move.end - move.start) != 2:
        return ""
    return next((right for right, (king, _, _) in CASTLES.items() if king == (move.start, move.end)), "")


def is_attacked(position: Position, square: int, by: Side) -> bool:
    """Return whether a side could capture on a square."""
    board = position.board
    pawn, knight, king = ("P", "N", "K") if by == "w" else ("p", "n", "k")
    back = -1 if by == "w" else 1
    if any(board[at] == pawn for at in _leap(square, ((1, back), (-1, back)))):
        return True
    if any(board[at] == knight for at in _leap(square, LEAPS)):
        return True
    if any(board[at] == king for at in _leap(square, STRAIGHT + DIAGONAL)):
        return True
    for piece in ("b", "r"):
        for direction in SLIDES[piece]:
            for at in _slide(square, direction):
                if board[at] != EMPTY:
                    if position.side_at(at) == by and board[at].lower() in (piece, "q"):
                        return True
                    break
    return False


def _list_reachable(position: Position) -> Iterator[Move]:
    """Yield all moves but castling, those that leave the king in check among them."""
    for start, letter in enumerate(position.board):
        if letter == EMPTY or position.side_at(start) != position.side:
            continue
        kind = letter.lower()
        if kind == "p":
            yield from _list_pawn_moves(position, start)
            continue
        if kind in SLIDES:
            ends = [end for direction in SLIDES[kind] for end in _slide_to_stop(position, start, direction)]
        else:
            ends = list(_leap(start, LEAPS if kind == "n" else STRAIGHT + DIAGONAL))
        for end in ends:
            if position.side_at(end) != position.side:
                yield Move(start, end)


def _list_pawn_moves(position: Position, start: int) -> Iterator[Move]:
    step = 8 if position.side == "w" else -8
    ends: list[int] = []
    if position.board[start + step] == EMPTY:
        ends.append(start + step)
        is_home = start // 8 == (1 if position.side == "w" else 6)
        if is_home and position.board[start + 2 * step] == EMPTY:
            ends.append(start + 2 * step)
    sideways = _leap(start, ((1, step // 8), (-1, step // 8)))
    ends += [end for end in sideways if position.side_at(end) == other(position.side) or end == position.en_passant]
    for end in ends:
        if end // 8 in (0, 7):
            yield from (Move(start, end, letter) for letter in "bnqr")
        else:
            yield Move(start, end)


def _list_castles(position: Position) -> Iterator[Move]:
    """Yield legal castling: nothing between king and rook, and no attack on the king's way."""
    for right in position.castling:
        (start, end), (rook, _), between = CASTLES[right]
        is_own = right.isupper() == (position.side == "w")
        king_letter, rook_letter = ("K", "R") if right.isupper() else ("k", "r")
        if not is_own or position.board[start] != king_letter or position.board[rook] != rook_letter:
            continue
        if any(position.board[square] != EMPTY for square in between):
            continue
        way = range(min(start, end), max(start, end) + 1)
        if not any(is_attacked(position, square, other(position.side)) for square in way):
            yield Move(start, end)


def _leap(square: int, steps: tuple[tuple[int, int], ...]) -> Iterator[int]:
    file, rank = square % 8, square // 8
    for right, up in steps:
        if 0 <= file + right < 8 and 0 <= rank + up < 8:
            yield square + right + 8 * up


def _slide(square: int, direction: tuple[int, int]) -> Iterator[int]:
    while True:
        ends = list(_leap(square, (direction,)))
        if not ends:
            return
        square = ends[0]
        yield square


def _slide_to_stop(position: Position, square: int, direction: tuple[int, int]) -> Iterator[int]:
    """Yield the squares up to the first piece, its own among them."""
    for end in _slide(square, direction):
        yield end
        if position.board[end] != EMPTY:
            return


def without_en_passant(position: Position) -> Position:
    """Return a position as an image shows it: nobody sees whether a pawn has just jumped."""
    return replace(position, en_passant=-1)
