"""Result files of batches that lie or are broken: each line costs itself, and no line decides about another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from fakes import Fake, Gemini, OpenAI
from weft.calls.caller import RetryPolicy

QUICK = RetryPolicy(tries=3, rate_limit_tries=3, base=0.001, cap=0.002)
Stand = Callable[[Fake], Any]
Line = dict[str, Any]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch):
    for name, value in (("QUIET_PERIOD_S", 5.0), ("FINAL_QUIET_PERIOD_S", 0.1), ("POLL_INTERVAL_S", 0.02)):
        monkeypatch.setattr(f"weft.models.batch_api.{name}", value)


def tampering(kind: type[Any], tamper: Callable[[list[bytes]], list[bytes]]) -> Any:
    """A provider whose result files are changed on their way; `tamper` takes and returns lines."""

    class Tampering(kind):
        async def content(self, request: web.Request) -> web.Response:
            response = await super().content(request)
            assert isinstance(response.body, bytes)
            lines = response.body.splitlines()
            if lines:
                response.body = b"\n".join(tamper(lines))
            return response

    return Tampering()


def values_of(fake: Any, toy: Path, home: Path) -> list[tuple[str, int, str, float | None]]:
    """What the judge's verdicts come to, each with what it is about."""
    options: Any = {"judge_batch": True, "home": home, "retry_policy": QUICK}
    run = weft.evaluate("weave", data=toy, model="copy", judge=fake.name, **options)
    return sorted((one.sample, one.turn, one.metric, one.value) for one in run.verdicts if one.by == "judge")


def lowered(line: bytes) -> bytes:
    """The same line with another score in its answer."""
    assert b'\\"score\\": 5' in line
    return line.replace(b'\\"score\\": 5', b'\\"score\\": 0')


def with_status(line: bytes, status: Any) -> bytes:
    changed = json.loads(line)
    changed["response"]["status_code"] = status
    return json.dumps(changed).encode()


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
@pytest.mark.parametrize("last", ["lie", "truth"])
def test_a_contradiction_is_asked_again(kind: type[Any], last: str, toy: Path, tmp_path: Path, stand: Stand):
    def contradict(lines: list[bytes]) -> list[bytes]:
        both = [lines[0], lowered(lines[0])]
        return [*(both if last == "lie" else reversed(both)), *lines[1:]]

    honest = values_of(stand(kind()), toy, tmp_path / "honest")
    fake = stand(tampering(kind, contradict))
    assert values_of(fake, toy, tmp_path / "home") == honest
    assert len(fake.seen) == 2, "the first request, and the one that was answered twice"


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(lambda lines: [*lines, lines[0]], id="the same twice"),
        pytest.param(lambda lines: [*lines, b"", b"  ", b"null", b"5", b"[]", b"{}"], id="lines without a name"),
        pytest.param(lambda lines: [*lines, json.dumps({"custom_id": 5, "key": {"x": 1}}).encode()], id="odd names"),
    ],
)
def test_what_says_nothing_costs_nothing(kind: type[Any], tamper: Any, toy: Path, tmp_path: Path, stand: Stand):
    honest = values_of(stand(kind()), toy, tmp_path / "honest")
    fake = stand(tampering(kind, tamper))
    assert values_of(fake, toy, tmp_path / "home") == honest and len(fake.seen) == 1


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        *((kind, lambda line: line[: len(line) // 2]) for kind in (OpenAI, Gemini)),
        *((kind, lambda line: b"\xff" + line) for kind in (OpenAI, Gemini)),
        *((kind, lambda line: b'{"custom_id":' * 5000) for kind in (OpenAI, Gemini)),
        *((OpenAI, lambda line, status=status: with_status(line, status)) for status in ("abc", None, [], 10**30, -1)),
    ],
)
def test_a_line_that_cannot_be_read_is_asked_again_and_holds_up_no_other(
    kind: type[Any], spoil: Any, toy: Path, tmp_path: Path, stand: Stand
):
    honest = values_of(stand(kind()), toy, tmp_path / "honest")
    fake = stand(tampering(kind, lambda lines: [*lines[:-1], spoil(lines[-1])]))
    assert values_of(fake, toy, tmp_path / "home") == honest
    assert len(fake.seen) == 2 and sum(fake.batches.looks.values()) <= fake.batches.patience


@pytest.mark.parametrize("odd", ["abc", None, [], -1, 10**30, "²", "9" * 5000])
def test_odd_counts_hold_up_nothing(odd: Any, toy: Path, tmp_path: Path, stand: Stand):
    class Counting(OpenAI):
        def batch(self, file: str, state: str) -> Line:
            counts = {"total": odd, "completed": odd, "failed": odd}
            return {**super().batch(file, state), "request_counts": counts}

    values = [value for *_, value in values_of(stand(Counting()), toy, tmp_path / "home")]
    assert values and None not in values
