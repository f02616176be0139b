"""The page that shows a benchmark of one's own: what stands there runs as it stands."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image as Pil

import weft
from toy import toy_records, write_weave
from weft.benchmarks.prompts import object_schema
from weft.benchmarks.weave import Weave
from weft.errors import ReuseWarning
from weft.types import Question, Score, TurnRef

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-benchmark.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    (tmp_path / "colours.py").write_text(found.group(1))
    (tmp_path / "DATA").mkdir()
    for name in ("car", "house"):
        Pil.new("RGB", (32, 32), "blue").save(tmp_path / "DATA" / f"{name}.png")
    records = [{"id": 1, "image": "car.png", "colour": "red"}, {"id": 2, "image": "house.png", "colour": "green"}]
    (tmp_path / "DATA" / "colours.json").write_text(json.dumps(records))
    return tmp_path


def test_the_commands_of_the_page_work(folder: Path):
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    listed = re.findall(r"^(weft .*?)(?:  +#.*)?$", "".join(blocks), re.MULTILINE)
    assert len(listed) == 4
    for line in listed:
        words = (
            line.replace("--model MODEL", "--model copy")
            .replace("--judge JUDGE", "--judge constant/4")
            .replace(" --open", "")
            .split()
        )
        done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
        if "check" in words:
            assert "2 of 2 records can be used" in done.stdout and "all complete" in done.stdout
        if "--help" in words:
            assert "--tone plain|polite" in done.stdout and "--colour TEXT" in done.stdout


def test_it_runs_from_python_with_its_own_option(folder: Path):
    run = weft.evaluate(
        f"{folder / 'colours.py'}:Colours",
        data=folder / "DATA",
        model="copy",
        judge="constant/4",
        home=folder / "home",
        tone="polite",
    )
    cells = run.table().cells("copy [tone polite]")
    assert [cells[metric].value for metric in ("colour", "shape")] == [0.75, 0.75]
    assert {(v.metric, v.score) for v in run.verdicts} == {("colour", 4.0), ("shape", 4.0)}


def test_the_optional_objects_of_the_page_work(folder: Path):
    """A model that replies in words is asked a second time, and then counts as the page says."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (folder / "objects.py").write_text("\n\n".join(blocks))
    asked: list[int] = []

    def stubborn(messages: Any, want: Any) -> Any:
        asked.append(len(messages))
        return Pil.new("RGB", (32, 32), "red") if len(messages) > 1 else "which red?"

    where = f"{folder / 'objects.py'}:InsistentColours"
    options: Any = {"judge": "constant/4", "home": folder / "home", "where": {"colour": "red"}}
    run = weft.evaluate(where, data=folder / "DATA", model=stubborn, **options)
    assert asked == [1, 2] and [verdict.value for verdict in run.verdicts] == [0.75, 0.75]
    assert run.benchmark.presentation.describe_gold("red") == ["colour: red"]
    done = subprocess.run(
        [sys.executable, "-m", "weft", "data", "check", where, str(folder / "DATA")], capture_output=True, text=True
    )
    assert done.returncode == 0 and "2 colours" in done.stdout, done.stderr


def test_code_of_a_benchmark_that_changes_without_its_version_is_noted(folder: Path):
    file = folder / "colours.py"
    options: Any = {"data": folder / "DATA", "model": "copy", "judge": "constant/4", "home": folder / "home"}
    first = weft.evaluate(f"{file}:Colours", **options)
    file.write_text(file.read_text() + "\n# edited\n")
    with pytest.warns(ReuseWarning, match="source of the benchmark colours has changed, its version '1' has not"):
        assert weft.evaluate(f"{file}:Colours", **options).id == first.id


def test_it_fits_on_a_page():
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found and len(found.group(1).splitlines()) <= 64


def test_a_part_that_is_none_costs_its_turn_alone_and_says_so(tmp_path: Path):
    """A text where a part is expected, in a question and in what a model is shown."""

    class Wrong(Weave):
        def questions(self, answered: Any) -> Any:
            asked = list(super().questions(answered))
            broken = replace(asked[0].messages[0], parts=("just words",))
            return [replace(asked[0], messages=(broken,)), *asked[1:]] if answered.sample.id == "7" else asked

    data = write_weave(tmp_path / "data", toy_records())
    run = weft.evaluate(Wrong, data=data, model="reference", judge="constant/5", home=tmp_path / "home")
    lost = {verdict.reason for verdict in run.verdicts if verdict.value is None}
    assert {verdict.sample for verdict in run.verdicts if verdict.value is None} == {"7"}
    assert all("parts are Text, Image or Thought" in reason for reason in lost) and run.record.state == "finished"


def test_one_metric_may_have_an_object_of_its_own(tmp_path: Path):
    entry = object_schema(reasoning={"type": "string"}, score={"type": "integer", "minimum": 0, "maximum": 10})

    class Nested(Weave):
        def questions(self, answered: Any) -> Any:
            return [
                replace(one, schema=object_schema(**{one.metrics[0]: entry})) for one in super().questions(answered)
            ]

    data = write_weave(tmp_path / "data", toy_records())
    run = weft.evaluate(Nested, data=data, model="reference", judge="constant/5", home=tmp_path / "home")
    assert {verdict.value for verdict in run.verdicts} == {0.5}


ENTRY = object_schema(reasoning={"type": "string"}, score={"type": "integer", "minimum": 0, "maximum": 10})


@pytest.mark.parametrize("metric", ["correct", "score"])
def test_a_reply_for_one_metric_is_flat_or_an_object_under_its_name_as_the_schema_asks(metric: str):
    reply = {"reasoning": "nearly", "score": 7}
    flat = Question((metric,), (), ENTRY, TurnRef())
    nested = Question((metric,), (), object_schema(**{metric: ENTRY}), TurnRef())
    expected = [Score(metric, 0.7, "nearly", 7.0)]
    assert Weave().to_scores(flat, reply) == expected
    assert Weave().to_scores(nested, {metric: reply}) == expected


def test_several_metrics_have_an_object_each():
    question = Question(("colour", "shape"), (), object_schema(colour=ENTRY, shape=ENTRY), TurnRef())
    reply = {"colour": {"reasoning": "red", "score": 10}, "shape": {"reasoning": "round", "score": 0}}
    assert [(score.metric, score.value) for score in Weave().to_scores(question, reply)] == [
        ("colour", 1.0),
        ("shape", 0.0),
    ]


WRONG_MESSAGES = """
from weft.benchmarks.weave import Weave
from weft.types import Message

class Wrong(Weave):
    name = "wrong"
    def build_messages(self, sample, turn, dialogue, options):
        return {returned}
"""


@pytest.mark.parametrize(
    "returned, problem",
    [
        ('(*dialogue, Message("user", turn.prompt))', "an int at position 0; expected Message"),
        ('(*dialogue.values(), Message("user", turn.prompt))', "a Reply at position 0; expected Message"),
        ('Message("user", turn.prompt)', "a Message; expected a tuple of Message"),
        ("(message for message in ())", "a generator; expected a tuple of Message"),
        (
            '(Message("user", turn.prompt), Message("narrator", turn.prompt))',
            "a message with the role 'narrator' at position 1; a role is system, user or assistant",
        ),
    ],
)
@pytest.mark.parametrize("extra", [[], ["--dry-run"]])
def test_messages_of_a_wrong_type_end_the_command_with_one_line(
    tmp_path: Path, returned: str, problem: str, extra: list[str]
):
    (tmp_path / "wrong.py").write_text(WRONG_MESSAGES.format(returned=returned))
    write_weave(tmp_path / "data", toy_records())
    command = ["run", "wrong.py:Wrong", "--data", "data", "--model", "copy", "--judge", "constant/5", "--home", "home"]
    done = subprocess.run(
        [sys.executable, "-m", "weft", *command, *extra], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"weft: benchmark wrong: build_messages returned {problem}")
    assert ("`dialogue` maps" in done.stderr) == ("expected" in problem)
