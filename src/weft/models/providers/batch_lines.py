"""The result files of a batch: JSON Lines in which every line stands for itself.

A line that cannot be read costs its own request, which is then asked again; so does a request that was answered twice
and differently, since nobody can say which answer is the right one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from weft.models.http import HttpResponse, parse_error
from weft.secrets import scrub
from weft.untrusted import dict_or_empty

# Returns a line's name and its result; None in place of a result if the line was never worked on.
LineReader = Callable[[dict[str, Any]], tuple[Any, HttpResponse | None]]
MAX_COUNT_DIGITS = 12
ODD_LINE = 502  # the status of a line that does not say what became of its request


def read_results(files: Iterable[bytes], read_line: LineReader) -> dict[str, HttpResponse | None]:
    """Return the results in result files by line name. Never raises for what is in them."""
    results: dict[str, HttpResponse | None] = {}
    for file in files:
        for line in file.splitlines():
            named = _read_line(line, read_line)
            if named is None:
                continue
            name, result = named
            if results.setdefault(name, result) != result:
                results[name] = build_error("the batch answered this more than once, and differently")
    return results


def _read_line(line: bytes, read_line: LineReader) -> tuple[str, HttpResponse | None] | None:
    try:
        named = read_line(dict_or_empty(msgspec.json.decode(line)))
    except (ValueError, RecursionError, OverflowError, TypeError):  # also msgspec's, and text that is not UTF-8
        return None
    if not isinstance(named[0], str):
        return None
    return named


def build_answer(status: Any, body: Any) -> HttpResponse:
    """Build an HTTP response from a line of a result file, so that it is read like any other."""
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status < 600:
        return build_error("a line of the batch has no status")
    message, codes = parse_error(body)
    return HttpResponse(status, {}, msgspec.json.encode(body), body, scrub(message), codes)


def build_error(error: Any) -> HttpResponse:
    """Build the response to a request that the batch did not answer."""
    return build_answer(ODD_LINE, {"error": error or "no reason was given"})


def read_count(counts: Mapping[str, Any], name: str) -> int:
    """Return a count that a server reports for progress displays, as a number or in digits; 0 if it is none."""
    text = str(counts.get(name))
    if text.isdecimal() and len(text) <= MAX_COUNT_DIGITS:
        return int(text)
    return 0
