"""Golden values: what a refactoring must not change. tests/golden/README.md says what they are and how they are written
anew."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from PIL import Image as Pil

import weft
from toy import write_opening
from weft.store.journal import Journal
from weft_tabletop.make import make

GOLDEN = Path(__file__).parent / "golden"
WRITES = os.environ.get("WEFT_GOLDEN") == "write"
DATA = {
    "weave": "tabletop-weave",
    "imug": "tabletop-imug",
    "planviz": "tabletop-planviz",
    "rover-ig": "tabletop-rover",
    "rover-tg": "tabletop-rover",
    "weaverbench": "tabletop-weaver",
    "gedit": "tabletop-gedit",
    "risebench": "tabletop-risebench",
    "imgedit": "tabletop-imgedit",
    "geneval": "tabletop-geneval",
    "kris": "tabletop-kris",
    "geneval2": "tabletop-geneval2",
    "mmvet": "tabletop-mmvet",
}


class Painter:
    """Draws one gray image and says one thing, whatever it is asked."""

    name, version = "golden-model", "1"

    def __call__(self, messages: Any, want: str) -> Any:
        image = Pil.new("RGB", (64, 64), "gray")
        return image if want == "image" else ["A gray table.", image] if want == "interleaved" else "gray"


class Judge:
    """Scores by sample, turn and metric alone, so that its numbers are stable under any wording."""

    name, version = "golden-judge", "1"

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        return filled(
            question.schema, f"{question.turn_ref.sample} {question.turn_ref.turn} {' '.join(question.metrics)}"
        )


def filled(schema: dict[str, Any], seed: str) -> Any:
    """A value that fits a JSON schema, chosen by `seed`."""
    number = int(hashlib.sha256(seed.encode()).hexdigest(), 16)
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    kind = schema.get("type")
    if kind == "object":
        return {name: filled(one, f"{seed} {name}") for name, one in schema["properties"].items()}
    if kind == "array":
        entries = [filled(schema["items"], f"{seed} {at}") for at in range(schema.get("minItems", 1))]
        return [numbered(schema["items"], entry, at) for at, entry in enumerate(entries)]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        return low + number % (high - low + 1)
    return number % 2 == 0 if kind == "boolean" else "because"


def numbered(schema: dict[str, Any], entry: Any, index: int) -> Any:
    """An entry of a list with its number, if its schema wants one: every number comes once, which no schema can say."""
    for name, one in schema.get("properties", {}).items():
        numbers = one.get("enum", ())
        if one["type"] == "integer" and index < len(numbers):
            return {**entry, name: numbers[index]}
    return entry


def pinned(name: str, value: str) -> None:
    """Compare with the golden file, or write it."""
    file = GOLDEN / name
    if WRITES:
        file.write_text(value)
    assert value == file.read_text(), f"{name} differs from its golden value"


def written(benchmark: str, folder: Path, samples: int = 4) -> Path:
    return write_opening(folder) if benchmark == "opening" else make(DATA[benchmark], folder, samples=samples, seed=1)


@pytest.mark.parametrize("benchmark", [*DATA, "opening"])
def test_cache_keys_dataset_digests_and_run_ids_stay(benchmark: str, tmp_path: Path):
    data = written(benchmark, tmp_path / "data")
    run = weft.evaluate(benchmark, data=data, model=Painter(), judge=Judge(), home=tmp_path / "home")
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    first = min(run.turns, key=lambda turn: (turn.position, turn.turn))
    calls = list(journal.calls(first.reply.keys[:1]).values())
    asked = min(
        (verdict for verdict in run.verdicts if verdict.keys), key=lambda one: (one.sample, one.turn, one.metric)
    )
    journal.close()
    found = {
        "dataset": run.record.manifest.dataset.digest,
        "run": run.id,
        "model call": calls[0].key,
        "judge call": asked.keys[0],
        "request": calls[0].request,
    }
    pinned(f"{benchmark}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def tables(run: weft.Run) -> str:
    """Tables as text, without the published rows."""
    return "\n\n".join(str(structs.replace(table, rows=table.run_rows)) for table in run.tables()) + "\n"


@pytest.mark.parametrize("benchmark", [one for one in DATA if one != "weave"])
def test_tables_of_the_tabletop_stay(benchmark: str, tmp_path: Path):
    data = written(benchmark, tmp_path / "data", 12)
    ends: dict[str, Any] = {"judge": "tabletop/exact", "home": tmp_path / "home"}
    runs = [
        weft.evaluate(benchmark, data=data, model=model, **ends)
        for model in ("tabletop/oracle", "tabletop/tiny", "copy")
    ]
    pinned(f"{benchmark}.txt", "\n".join(tables(run) for run in runs))


def test_tables_of_real_weave_dialogues_stay(real: Path, tmp_path: Path):
    runs = [
        weft.evaluate("weave", data=real, model=model, judge=Judge(), home=tmp_path)
        for model in (Painter(), "reference", "copy")
    ]
    pinned("weave-real.txt", "\n".join(tables(run) for run in runs))
