"""Datasets of every benchmark that one can be made for, and what of them are records."""

import json
from pathlib import Path
from typing import Any

from toy import write_opening
from weft import benchmarks
from weft.benchmarks.base import Benchmark
from weft_tabletop.make import WRITERS, make

# records that are another benchmark's under another name
OTHER_NAMES = {"geneval-long": ("evaluation_metadata.jsonl", "evaluation_metadata_long.jsonl")}

PROVIDERS = {"geneval2": "logprobs"}  # of judges, where words are not enough


def judge_at(url: str, benchmark: str, name: str = "judge") -> str:
    """A judge that can answer what a benchmark asks."""
    return f"{PROVIDERS.get(benchmark, 'openai-chat')}/{name}@{url}"


def made_for(name: str, folder: Path, samples: int, seed: int) -> Path | None:
    """A dataset of a benchmark, if there is a maker of such."""
    made = folder / f"{name}-{samples}-{seed}"
    if name == "opening":
        return write_opening(made, samples)
    kinds = [writer.removeprefix("tabletop-") for writer in WRITERS]
    kind = next((one for one in kinds if name in (one, f"{one}bench") or name.startswith(f"{one}-")), None)
    if kind is None:
        print(f"  {name}: no dataset of it can be made, so it is not attacked", flush=True)
        return None
    make(f"tabletop-{kind}", made, samples=samples, seed=seed)
    if name in OTHER_NAMES:
        before, after = OTHER_NAMES[name]
        (made / before).rename(made / after)
    return made


def all_of(folder: Path, samples: int, seed: int) -> dict[str, tuple[Benchmark, Path]]:
    found: dict[str, tuple[Benchmark, Path]] = {}
    for name in benchmarks.list_benchmarks():
        data = made_for(name, folder, samples, seed)
        if data is not None:
            found[name] = (benchmarks.load_benchmark(name), data)
    return found


def record_files(data: Path) -> list[Path]:
    """The files that hold records, and others that a loader reads beside them; not the exact judge's truth."""
    return sorted(
        path for path in data.rglob("*") if path.suffix in (".json", ".jsonl") and path.name != "tabletop.json"
    )


def main_file(data: Path, name: str) -> Path:
    """The one that is called as the benchmark is, or the largest."""
    return max(record_files(data), key=lambda path: (path.stem.lower() == name, path.stat().st_size))


def records_of(file: Path) -> list[Any]:
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    found = json.loads(file.read_text())
    return found if isinstance(found, list) else [found]


def joined(file: Path, texts: list[bytes]) -> bytes:
    """Records as the file has them, each already in its own bytes."""
    return b"\n".join(texts) + b"\n" if file.suffix == ".jsonl" else b"[" + b",\n".join(texts) + b"]"
