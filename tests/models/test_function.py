"""A user's own model: ten lines, any style, nothing of weft imported."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from waiting import until
from weft.errors import UserError
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs

LOCK = threading.Lock()


def run(toy: Path, home: Path, model: Any, **options: Any) -> weft.Run:
    return weft.evaluate("weave", data=toy, home=home, model=model, judge="constant/10", **options)


def painter(messages: Any, want: str) -> Any:
    role, parts = messages[-1]
    assert role == "user" and all(isinstance(part, (str, Pil.Image)) for part in parts)
    return Pil.new("RGB", (16, 16), "red") if want == "image" else "four"


async def apainter(messages: Any, want: str) -> Any:
    await asyncio.sleep(0)
    return ["a picture:", Pil.new("RGB", (16, 16), "blue")] if want == "image" else ["fo", "ur"]


class Painter:
    name, version = "class-painter", "7"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Any, want: str) -> Any:
        self.calls += 1
        return painter(messages, want)


@pytest.mark.parametrize("model", [painter, apainter, Painter(), Painter], ids=["plain", "async", "object", "class"])
def test_plain_async_function_object_and_class_all_work(toy: Path, tmp_path: Path, model: Any):
    made = run(toy, tmp_path / "home", model)
    assert made.table().cells(made.name)["Avg"].value == 1.0 and len(made.turns) == 10


def test_answers_are_kept_under_the_name_and_version_given(toy: Path, tmp_path: Path):
    model = Painter()
    run(toy, tmp_path / "home", model)
    assert model.calls == 10
    run(toy, tmp_path / "home", model)
    assert model.calls == 10
    model.version = "8"
    run(toy, tmp_path / "home", model)
    assert model.calls == 20


def test_plain_models_run_one_at_a_time_unless_told_otherwise(toy: Path, tmp_path: Path):
    class Slow:
        name = "slow"

        def __init__(self, version: str, concurrency: int | None) -> None:
            self.version, self.active, self.most = version, 0, 0
            if concurrency:
                self.concurrency = concurrency

        def __call__(self, messages: Any, want: str) -> Any:
            with LOCK:
                self.active += 1
                self.most = max(self.most, self.active)
            until("as many at once as may be", lambda: self.most >= getattr(self, "concurrency", 1))
            with LOCK:
                self.active -= 1
            return painter(messages, want)

    one, many = Slow("1", None), Slow("2", 4)
    run(toy, tmp_path / "home", one)
    run(toy, tmp_path / "home", many)
    assert one.most == 1 and many.most == 4


def test_what_a_model_raises_leaves_its_turn_unscored_with_the_reason(toy: Path, tmp_path: Path):
    def fails(messages: Any, want: str) -> Any:
        if want == "image":
            raise ValueError("CUDA out of memory")
        return 17

    made = run(toy, tmp_path / "home", fails)
    reasons = {verdict.reason for verdict in made.verdicts}
    assert all(verdict.value is None for verdict in made.verdicts)
    assert any("test_function.py:fails raised ValueError: CUDA out of memory" in reason for reason in reasons)
    assert any(
        "test_function.py:fails returned int; it may return str, PIL.Image, or a list of both" in reason
        for reason in reasons
    )


def test_two_files_with_a_model_of_the_same_name_and_version_are_two_models(blobs: Blobs, tmp_path: Path):
    for folder in ("bagel", "janus"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(
            f"def model(messages, want):\n    return {folder!r}\nmodel.version = '1'\n"
        )
    identities = [
        dict(resolve_endpoint(f"{tmp_path / folder / 'mine.py'}:model", blobs).identity)
        for folder in ("bagel", "janus")
    ]
    assert identities[0] != identities[1]


def test_text_that_is_no_text_is_a_failed_call_and_not_a_crash(toy: Path, tmp_path: Path):
    def broken(messages: Any, want: str) -> str:
        return "half a pair \ud800"

    made = run(toy, tmp_path / "home", broken, turns="text")
    assert all(verdict.value is None and "invalid reply" in verdict.reason for verdict in made.verdicts)


def test_evaluate_works_inside_a_running_loop(toy: Path, tmp_path: Path):
    async def notebook() -> weft.Run:
        return run(toy, tmp_path / "home", painter)

    assert asyncio.run(notebook()).table().rows


def test_a_model_in_a_file_is_found_by_name(blobs: Blobs, tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text("name = 'x'\ndef model(messages, want):\n    return 'hi'\n")
    endpoint = resolve_endpoint(f"{file}:model", blobs)
    assert endpoint.name == "mine.py:model"
    before = endpoint.identity["version"]
    file.write_text("name = 'x'\ndef model(messages, want):\n    return 'ho'\n")
    assert resolve_endpoint(f"{file}:model", blobs).identity["version"] != before, "an edit asks anew"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("gone.py:model", "there is no file gone.py"),
        ("{dir}/mine.py:nothing", "has no 'nothing'"),
        ("{dir}/broken.py:model", "raised ZeroDivisionError"),
        ("{dir}/mine.py:NUMBER", "is no model"),
        ("nosuch/model", "unknown model 'nosuch/model'"),
        ("folder/{dir}/nowhere", "there is no folder"),
        ("constant/high", "needs a number"),
    ],
)
def test_mistakes_in_naming_a_model_are_one_clear_line(blobs: Blobs, tmp_path: Path, text: str, why: str):
    (tmp_path / "mine.py").write_text("NUMBER = 3\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match=why):
        resolve_endpoint(text.replace("{dir}", str(tmp_path)), blobs)


def seeded(messages: Any, want: str, seed: int = 0, strength: float = 0.5, *, fast: bool = False) -> Any:
    return (
        Pil.new("RGB", (16, 16), (seed % 256, int(100 * strength), 200 if fast else 0))
        if want == "image"
        else f"{seed} {strength} {fast}"
    )


seeded.version = "1"  # type: ignore[attr-defined]


class Made:
    name, version = "made", "1"

    def __init__(self, size: int = 16) -> None:
        self.size = size

    def __call__(self, messages: Any, want: str, seed: int = 0) -> Any:
        return Pil.new("RGB", (self.size, self.size), (seed, 0, 0)) if want == "image" else str(seed)


def test_options_and_a_seed_go_by_name_and_are_what_answers_are_kept_under(toy: Path, tmp_path: Path):
    made = run(toy, tmp_path, seeded, model_options={"seed": "7", "strength": "0.25", "fast": "true"})
    texts = {turn.reply.text for turn in made.turns if turn.modality == "text"}
    assert texts == {"7 0.25 True"} and "seed 7" in made.name and "strength 0.25" in made.name
    other = run(toy, tmp_path, seeded, model_options={"seed": 8})
    assert {turn.reply.text for turn in other.turns if turn.modality == "text"} == {
        "8 0.5 False"
    } and other.id != made.id
    sized = run(toy, tmp_path, Made, model_options={"size": "32", "seed": 3})
    assert {turn.reply.last_image.width for turn in sized.turns if turn.reply.last_image} == {32}
    for wrong, said in (
        ({"nothing": 1}, "its own parameters are seed, strength, fast"),
        ({"strength": "much"}, "give a number"),
    ):
        with pytest.raises(UserError, match=said):
            run(toy, tmp_path, seeded, model_options=wrong)


def test_candidates_of_a_seeded_function_differ(toy: Path, tmp_path: Path):
    made = run(toy, tmp_path, seeded, model_options={"seed": 1}, strategy="best-of:3")
    assert not made.summary().same_candidates, "each candidate has a seed of its own"


def test_a_frame_of_pandas_or_of_polars_has_plain_columns(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import importlib.util

    made = run(toy, tmp_path, painter)
    find = importlib.util.find_spec
    kinds: list[str] = []
    for hidden in ((), ("pandas",), ("pandas", "polars")):
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, *more, hidden=hidden: None if name in hidden else find(name, *more)
        )
        if len(hidden) == 2:
            with pytest.raises(UserError, match="pip install pandas"):
                made.frame()
            continue
        frame = made.frame()
        kinds.append(type(frame).__module__.partition(".")[0])
        assert {"run", "sample", "turn", "metric", "value", "points", "reason", "group_domain"} <= set(frame.columns)
        assert len(frame) == len(made.verdicts)
    assert kinds == ["pandas", "polars"]
