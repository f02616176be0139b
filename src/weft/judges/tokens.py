"""The first token of an answer with its most likely alternatives, as a judge that is a program reports them:
`weft.judges.logprobs`, `tabletop/exact`.

A question to such a judge has the image in its material as `output` and the first words of right answers as `accepted`.
The answer is an object with `tokens`, each with `token` and `logprob`.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

SURE = 0.05  # the probability of a piece of a word that is taken for the beginning of an answer


class Token(Struct, frozen=True):
    """A token that an answer may begin with."""

    token: str
    logprob: Annotated[float, Meta(le=0.001)]  # natural; servers round 0


class Tokens(Struct, frozen=True):
    """The likeliest first tokens of an answer."""

    tokens: Annotated[tuple[Token, ...], Meta(min_length=1, max_length=200_000)]


def write_tokens(tokens: Iterable[Token]) -> str:
    return msgspec.json.encode(Tokens(tuple(tokens))).decode()


def read_tokens(text: str) -> tuple[Token, ...] | None:
    """Read the tokens of an answer; None if it is something else, such as words."""
    try:
        return msgspec.json.decode(text, type=Tokens).tokens
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def find_probability(tokens: Sequence[Token], accepted: Collection[str]) -> float | None:
    """Return the probability of the accepted words among the tokens; None if none of them is there.

    Raises ValueError if the answer begins with a piece of an accepted word, so that its probability cannot be told.
    """
    for token in tokens:
        piece = token.token.strip()
        is_piece = piece and piece not in accepted and any(word.startswith(piece) for word in accepted)
        if is_piece and math.exp(token.logprob) >= SURE:
            raise ValueError(f"the model writes words in pieces ({piece!r}): their probability cannot be told")
    found = [token.logprob for token in tokens if token.token.strip() in accepted]
    if not found:
        return None
    return min(1.0, math.fsum(math.exp(logprob) for logprob in found))


def list_entries(logprobs: Any) -> tuple[Token, ...]:
    """Return the tokens at the first place of a chat completion's `logprobs`; none if there are none."""
    try:
        content = msgspec.convert(logprobs, _Logprobs).content
    except msgspec.ValidationError:
        return ()
    return content[0].top_logprobs if content else ()


class _Place(Struct):
    top_logprobs: tuple[Token, ...] = ()


class _Logprobs(Struct):
    content: tuple[_Place, ...] = ()
