"""Weights and journals with damage of every kind: one line each; of a journal, what was paid for is found again, and
nothing else."""

import json
import random
import shutil
import sqlite3
import struct
from collections import Counter
from pathlib import Path

from fuzz import Broken
from fuzz.data import all_of
from fuzz.spoil import spoil_bytes, spoil_json
from weft import api
from weft.errors import UserError, WeftError
from weft.results.run import Run, load_run
from weft.store.journal import Journal
from weft.store.recover import check_journal
from weft_tabletop.tiny.endpoint import SHIPPED
from weft_tabletop.tiny.infer import Tiny


def weights(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    place = folder / "weights"
    place.mkdir()
    whole = {name: (SHIPPED / f"{name}.safetensors").read_bytes() for name in ("pictures", "talker")}
    for name, data in whole.items():
        (place / f"{name}.safetensors").write_bytes(data)
    for _ in range(count):
        name = chance.choice(["pictures", "pictures", "talker"])
        file = place / f"{name}.safetensors"
        file.write_bytes(_spoilt(whole[name], chance))
        try:
            Tiny(place)
            done["taken: the damage changed nothing that is read"] += 1
        except UserError as error:
            if "\n" in str(error):
                raise Broken(str(error)) from None
            done["refused in one line"] += 1
        file.write_bytes(whole[name])
    return done


def _spoilt(data: bytes, chance: random.Random) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    if chance.random() < 0.3:
        return spoil_bytes(data, chance)
    head = data[8 : 8 + length]
    as_json = chance.random() < 0.5
    head = json.dumps(spoil_json(json.loads(head), chance)).encode() if as_json else spoil_bytes(head, chance)
    size = len(head) if chance.random() < 0.8 else chance.choice([0, 1, 2**40, 2**63, len(head) + 1])
    return struct.pack("<Q", size) + head + data[8 + length :]


def journals(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    home = folder / "journals"
    for name, (_, data) in all_of(folder / "journals-data", 6, 0).items():
        api.evaluate(name, data=data, model=_answers, judge=_judges, home=home)
    path, whole = home / "journal.sqlite", folder / "whole.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, whole)
    with sqlite3.connect(whole) as db:
        paid = {row[0]: row[1] for row in db.execute("SELECT key, reply FROM calls")}
    size = whole.stat().st_size
    for _ in range(count):
        content = bytearray(whole.read_bytes())
        for _ in range(chance.choice([1, 1, 4, 20])):
            at, long = chance.randrange(size), chance.choice([1, 16, 512, 4096])
            at = at // 4096 * 4096 if long == 4096 else at
            content[at : at + long] = chance.choice([bytes(long), chance.randbytes(long), b"\xff" * long])
        if chance.random() < 0.2:
            del content[chance.randrange(size) :]
        for old in home.glob("journal.sqlite*"):
            old.unlink()
        path.write_bytes(content)
        if chance.random() < 0.3:
            path.with_name("journal.sqlite-wal").write_bytes(chance.randbytes(chance.choice([10, 32, 5000])))
        done["read whole" if _readable(path) else "refused in one line"] += 1
        health = check_journal(path)
        if not _readable(path):
            raise Broken(f"a mended journal cannot be read: {health}")
        with sqlite3.connect(path) as db:
            kept = {row[0]: row[1] for row in db.execute("SELECT key, reply FROM calls")}
        replies = set(paid.values())
        made_up = [key for key, reply in kept.items() if key not in paid and reply not in replies]
        if made_up:  # bytes inside a key's own text may have changed: then the reply is one that was made
            raise Broken(f"{len(made_up)} calls that nobody made")
        done["calls there were"] += len(paid)
        done["calls saved"] += len(kept)
    return done


def _readable(path: Path) -> bool:
    try:
        journal = Journal(path, readonly=True)
        try:
            for record in journal.runs():
                run: Run = load_run(journal, record.id)
                run.summary(), run.table()  # type: ignore[unused-expression]
        finally:
            journal.close()
    except WeftError as error:
        if "\n" in str(error):
            raise Broken(str(error)) from None
        return False
    return True


def _answers(messages: object, want: str) -> object:
    from PIL import Image

    return Image.new("RGB", (64, 64), "red") if want == "image" else "A"


def _judges(messages: object, want: str, question: object) -> object:
    from weft.models.baselines import ConstantJudge

    return ConstantJudge(None)._fill(question.schema)  # type: ignore[attr-defined]


_answers.version = _judges.version = "1"  # type: ignore[attr-defined]
