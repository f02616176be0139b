"""Models that lie to builds: whoever writes, draws or checks for a recipe may say anything and send any image. Every
recipe makes dialogues or says why not, its files are a dataset that can be checked, evaluated and exported, and nothing
is written elsewhere."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image as Pil

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.spoil import ODD, spoil_json, spoil_text
from weft.building.export import LAYOUTS
from weft.building.parts import read_rows
from weft.building.recipe import list_recipes, load_recipe
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply
from weft.types import Image, Part, Text
from weft_tabletop.exact.endpoint import Exact
from weft_tabletop.oracle import Oracle

SEEDS = 3
SIZES = ((1, 1), (1, 3000), (3000, 1), (64, 64), (257, 131))
TEXTS = ["=cmd|' /C calc'!A0", "../../outside", "\x1b[2J\x1b[31m", "<script>alert(1)</script>", "Image #0", "\ud800", "\0", "x" * 200_000, "Image #" + "9" * 500, "\u202e", "{" * 3000, ""]  # fmt: skip


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    recipes = list(list_recipes())
    for number in range(count):
        seed = chance.randrange(10**9)
        recipe = recipes[number % len(recipes)]
        work = folder / "above" / f"{number}"
        work.mkdir(parents=True)
        with lying(random.Random(seed), random.Random(seed).choice([0.05, 0.2, 0.6, 1.0])):
            _build(recipe, work, f"{recipe}, seed {seed}", done)
        shutil.rmtree(work)
        if len(list(folder.iterdir())) > 1 or list((folder / "above").iterdir()):
            raise Broken(f"{recipe}, seed {seed}: it wrote elsewhere")
    return done


def words_of(recipe: str) -> list[str]:
    words = ["build", recipe, "--seeds", str(SEEDS), "--part-size", "2", "--out", "data"]
    for role in load_recipe(recipe).roles:
        if not role.optional:
            words += [f"--{role.name}", "tabletop/exact" if role.name == "checker" else "tabletop/oracle"]
    return words


def _build(recipe: str, work: Path, what: str, done: Counter[str]) -> None:
    commands = [words_of(recipe), ["build", "status", "data"]]
    export = ["build", "export", "data", "--accept-unknown-terms", "--to"]
    commands += [[*export, layout, "--out", f"as-{layout}"] for layout in LAYOUTS]
    commands += [["data", "check", "weave", "data"], ["data", "stats", "weave", "data"]]
    for words in commands:
        try:
            ended = run_command(words, work)
        except Broken as broken:
            raise Broken(f"{what}: {broken}") from None
        done[f"{' '.join(words[:2]) if words[0] == 'data' else words[1]}: exit code {ended.code}"] += 1
        if "\x1b[" in ended.out + ended.err or (ended.code == 2 and ended.err.count("\n") > 4):
            raise Broken(f"{what}, weft {' '.join(words)}: {ended.out[-500:]} {ended.err[-800:]}")
    if not (work / "data" / "parts").is_dir():
        return
    for row in read_rows(work / "data"):
        done[f"dialogues {row.outcome}"] += 1
        is_kept = row.outcome == "kept"
        if is_kept == bool(row.reason) or (is_kept and row.draft is None):
            raise Broken(f"{what}: row {row.number} is {row.outcome}, because of {row.reason!r}")
    strange = {path.name for path in work.iterdir()} - {"data", ".stdout", ".stderr", *(f"as-{one}" for one in LAYOUTS)}
    if strange:
        raise Broken(f"{what}: {strange} was written")


@contextmanager
def lying(chance: random.Random, share: float) -> Iterator[None]:
    """Let a share of the replies of the tabletop's models be others."""
    originals = {kind: kind.send for kind in (Oracle, Exact)}

    def spoilt(kind: Any) -> Any:
        async def send(self: Any, messages: Any, request: Any) -> EndpointReply:
            reply = await originals[kind](self, messages, request)
            if chance.random() > share:
                return reply
            return _spoil(reply, self._blobs, chance)

        return send

    for kind in originals:
        kind.send = spoilt(kind)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for kind, send in originals.items():
            kind.send = send  # type: ignore[method-assign]


def _spoil(reply: EndpointReply, blobs: Any, chance: random.Random) -> EndpointReply:
    what = chance.randrange(10)
    if what == 0:
        raise CallError("no\x1b[31m\n<b>", chance.choice([NO_RETRY, TRANSIENT]))
    if what == 1:
        outcome: Any = chance.choice(["empty", "blocked", "answered", "failed"])
        return EndpointReply(
            chance.choice([(), reply.parts]), outcome, chance.choice(TEXTS), served_model=reply.served_model
        )
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, Text):
            parts.append(Text(_other_text(part.text, chance)))
        else:
            parts.append(_other_image(blobs, chance) if isinstance(part, Image) else part)
    if chance.random() < 0.2:
        parts += chance.choice([[Text(chance.choice(TEXTS))], [_other_image(blobs, chance)] * 3, list(reply.parts)])
    return EndpointReply(tuple(parts), reply.outcome, reply.reason, served_model=reply.served_model)


def _other_text(text: str, chance: random.Random) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return chance.choice(TEXTS)
    what = chance.randrange(3)
    if what == 0:
        return spoil_text(value, chance)
    if what == 1 and isinstance(value, dict) and value:
        return json.dumps({**value, chance.choice(sorted(value)): chance.choice([*TEXTS, *ODD])})
    return json.dumps(spoil_json(value, chance))


def _other_image(blobs: Any, chance: random.Random) -> Image:
    data = BytesIO()
    Pil.new("RGB", chance.choice(SIZES), (chance.randrange(256), 9, 9)).save(data, "png")
    return blobs.put(data.getvalue())
