"""weft.toml with sections, suites, models and prices that lie: each command works, or says in one line what is wrong."""

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.spoil import spoil_bytes, spoil_json
from weft_tabletop.make import make

COMMANDS = [
    ["suite", "run", "--models", "copied", "--limit", "1"],
    ["suite", "run", "--models", "copied,copy", "--judge", "constant/5", "--dry-run"],
    ["suite", "report"],
    ["run", "weave", "--model", "copied", "--limit", "1"],
    ["run", "weave", "--model", "copied", "--limit", "1", "--budget", "1"],
    ["models"],
    ["runs"],
    ["doctor"],
]


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    folder = folder / "above" / "work"  # whatever else is written to /tmp meanwhile
    folder.mkdir(parents=True)
    data = make("tabletop-weave", folder / "weave", samples=2, seed=0)
    sound: dict[str, Any] = {
        "defaults": {"judge": "constant/5", "home": "home", "run": {"concurrency": 2}, "weave": {"data": str(data)}},
        "models": {"copied": {"use": "copy", "version": "1", "images": "strip"}},
        "prices": {"copied": {"in": 1.0, "out": 4.0, "image": 0.1}},
        "suite": {"weave": {"data": str(data), "limit": 1}, "again": {"benchmark": "weave", "data": str(data)}},
    }
    file = folder / "weft.toml"
    for _ in range(count):
        text = _toml(spoil_json(sound, chance)).encode("utf-8", "replace")
        if chance.random() < 0.2:
            text = spoil_bytes(text, chance)
        file.write_bytes(text)
        words = chance.choice(COMMANDS)
        before = {path.name for path in folder.parent.iterdir()}
        ended = run_command(words, folder)
        if ended.code == 2 and ended.err.count("\n") > 4:
            raise Broken(f"weft {' '.join(words)}: {ended.err[:1000]}")
        if {path.name for path in folder.parent.iterdir()} != before:
            raise Broken(f"weft {' '.join(words)} wrote outside")
        done[f"exit code {ended.code}"] += 1
    done["files"] = count
    return done


def _toml(value: Any) -> str:
    if not isinstance(value, dict):
        return f"value = {_inline(value)}\n"
    return "".join(f"{json.dumps(str(key))} = {_inline(entry)}\n" for key, entry in cast(dict[str, Any], value).items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(str(key))} = {_inline(entry)}" for key, entry in cast(dict[str, Any], value).items()
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, cast(list[Any], value))) + "]"
    if value is None:
        return '"null"'
    if isinstance(value, float) and not math.isfinite(value):
        return "nan"
    return json.dumps(value)
