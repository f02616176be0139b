"""Malformed records, as JSON and as bytes, to every benchmark's loader: each costs itself, is named, and nothing is
lost or made up."""

import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from fuzz import Broken
from fuzz.data import all_of, joined, main_file, record_files, records_of
from fuzz.spoil import spoil_bytes, spoil_json
from weft import api
from weft.benchmarks.base import Benchmark
from weft.errors import UserError, WeftError
from weft.store.blobs import Blobs
from weft.types import Dataset

TOGETHER = 50


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    for name, (benchmark, data) in all_of(folder / "records", 12, chance.randrange(10**6)).items():
        blobs = Blobs(folder / "records" / f"{name}-blobs")
        file, spoilt = main_file(data, name), 0
        whole = records_of(file)
        beside = [other for other in record_files(data) if other != file]
        original = {path: path.read_bytes() for path in [file, *beside]}
        while spoilt < count:
            kind = chance.choice(["json", "json", "bytes", "bytes", "beside"])
            alone = kind == "bytes" and file.suffix == ".json" and chance.random() < 0.8
            some = [chance.choice(whole) for _ in range(1 if alone else TOGETHER)]
            if kind == "beside" and beside:
                other = chance.choice(beside)
                other.write_bytes(spoil_bytes(original[other], chance))
                texts = [json.dumps(record).encode() for record in some[:5]]
                spoilt += 1
            elif kind == "json":
                texts = [json.dumps(spoil_json(record, chance)).encode() for record in some]
                spoilt += len(some)
            else:
                texts = [spoil_bytes(json.dumps(record).encode(), chance) for record in some]
                spoilt += len(some)
            file.write_bytes(joined(file, texts))
            found = _loaded(benchmark, data, blobs)
            if found is None:
                done[f"{name}: files refused whole"] += 1
            else:
                done[f"{name}: records loaded"] += len(found.samples)
                done[f"{name}: records left out"] += found.records - len(found.samples)
                if chance.random() < 0.15 and found.samples:
                    _run(name, data, folder)
                    done[f"{name}: whole runs"] += 1
            for path, content in original.items():
                path.write_bytes(content)
        done[f"{name}: records spoilt"] = spoilt
    return done


def _loaded(benchmark: Benchmark, data: Path, blobs: Blobs) -> Dataset | None:
    try:
        found = benchmark.load(data, blobs).load_all()
    except UserError as error:
        if "\n" in str(error):
            raise Broken(f"an error of more than one line: {error}") from None
        return None
    # without one: a whole file
    out = {problem.record for problem in found.problems if problem.severity == "error" and problem.record}
    if found.records != len(found.samples) + len(out):
        raise Broken(f"{found.records} records, {len(found.samples)} loaded, {len(out)} named as left out")
    if len({sample.id for sample in found.samples}) != len(found.samples):
        raise Broken("two samples have one id")
    return found


def _run(name: str, data: Path, folder: Path) -> None:
    """What was loaded goes the whole way."""
    home = Path(tempfile.mkdtemp(dir=folder))
    try:
        run = api.evaluate(name, data=data, model="copy", judge="constant/max", home=home)
        if run.record.state != "finished" or not run.record.is_complete(len(run.turns)):
            raise Broken("a run is not whole")
        run.report("md")
    except WeftError as error:
        if "\n" in str(error):
            raise Broken(str(error)) from None
    finally:
        shutil.rmtree(home)
