"""Ways to spoil JSON and bytes."""

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 3.5, 1e308, -0.0, 2**63, 10**30, "", " ", "\0", "\x1b[31m", "a" * 5000, "../../etc/passwd",
    "/etc/passwd",
    "Image #0", "Image #999999999999", "<image>" * 3, "<DYNAMIC>", "A+<DYNAMIC>", "\u202e", "NaN", "-1", "٣", "²", "..",
    "C:\\x", [], {}, [[]],
    [None], {"": None}, [1, "a", None], {"a": {"b": [1, {"c": None}]}}, "\U0001f600" * 50, "{}", "[[question]]",
    "<script>alert(1)</script>",
]  # fmt: skip

MARKS = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\xff", b"\0", b"\xed\xa0\x80", b"1e999", b"null"]
NOTHING = [
    "",
    " ",
    "I cannot judge this.",
    "<think>hm",
    "</think>",
    "{" * 3000,
    "[" * 3000,
    '{"a":' * 3000,
    "\0",
    "null",
    "7",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [place for key, one in value.items() for place in places(one, (*path, key))]
    elif isinstance(value, list):
        found += [place for at, one in enumerate(value) for place in places(one, (*path, at))]
    return found


def spoil_json(value: Any, chance: random.Random) -> Any:
    """A copy with one to three places changed: another value, none, twice, or under another name."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice([1, 1, 2, 3])):
        some = [place for place in places(value) if place]
        if not some:
            return chance.choice(ODD)
        *parents, last = chance.choice(some)
        holder = value
        for key in parents:
            holder = holder[key]
        what = chance.randrange(6)
        if what == 0 and isinstance(holder, dict):
            del holder[last]
        elif what == 0:
            holder.pop(last)
        elif what == 1 and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[last]))
        elif what == 2 and isinstance(holder, dict):
            holder[chance.choice(["", "x", "\0", str(last).upper(), f"{last} "])] = holder.pop(last)
        elif what == 3 and isinstance(holder[last], (list, dict)) and holder[last]:
            holder[last] = type(holder[last])()
        elif what == 4 and isinstance(holder[last], str):
            text = holder[last]
            at = chance.randrange(len(text) + 1)
            holder[last] = (
                text[:at]
                + chance.choice(["\0", "#", "999", "\n", "<image>", "é", ""])
                + text[at + chance.randrange(3) :]
            )
        else:
            holder[last] = copy.deepcopy(chance.choice(ODD))
    return value


def spoil_file(
    file: Path, chance: random.Random, values: Sequence[Any] | None = None, only: type | tuple[type, ...] = object
) -> None:
    """Spoil a file of JSON, or one line of a file of JSON lines. `values`: put one of them in the place of one that is
    an instance of `only`, and leave the rest as it is."""
    lines = file.read_text("utf-8", "replace").splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    number = chance.randrange(len(lines)) if lines else 0
    try:
        content = json.loads(lines[number])
    except (ValueError, IndexError):  # it is spoilt already
        return
    spoilt = spoil_json(content, chance) if values is None else _put_value(content, chance, values, only)
    lines[number] = json.dumps(spoilt)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8", "replace")


def _put_value(value: Any, chance: random.Random, values: Sequence[Any], only: type | tuple[type, ...]) -> Any:
    value = copy.deepcopy(value)
    found: list[tuple[Any, Any]] = []
    for *parents, last in (place for place in places(value) if place):
        holder = value
        for key in parents:
            holder = holder[key]
        if isinstance(holder[last], only):
            found.append((holder, last))
    if found:
        holder, last = chance.choice(found)
        holder[last] = copy.deepcopy(chance.choice(values))
    return value


def spoil_bytes(data: bytes, chance: random.Random) -> bytes:
    """One to four bytes, or stretches, changed, put in, taken out, or moved."""
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(made) + 1)
        what = chance.randrange(7)
        if what == 0 and made:
            made[at % len(made)] ^= 1 << chance.randrange(8)
        elif what == 1:
            made[at:at] = chance.randbytes(chance.choice([1, 2, 8, 64]))
        elif what == 2:
            del made[at : at + chance.choice([1, 3, 20, 200])]
        elif what == 3:
            made[at:at] = chance.choice(
                [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\xff", b"\0", b"\xed\xa0\x80", b"1e999", b"null"]
            )
        elif what == 4:
            del made[at:]
        elif what == 5:
            made[at:at] = made[: chance.choice([1, 5, 50])]
        else:
            made[at : at + 1] = chance.choice(
                [b"[" * 3000, b'{"a":' * 3000, b"9" * 400, b"\\ud800", b"\xef\xbb\xbf", b"\r", b"\x0b"]
            )
    return bytes(made)


def spoil_text(value: Any, chance: random.Random) -> str:
    """JSON as it may come from a model: as it is, spoilt, cut, inside words, fences and tags, twice, or nested without
    end."""
    text = json.dumps(value)
    what = chance.randrange(12)
    if what == 0:
        return json.dumps(spoil_json(value, chance))
    if what == 1:
        return spoil_bytes(text.encode(), chance).decode("utf-8", "replace")
    if what == 2:
        return f"<think>{chance.choice(['{', 'so', text])}</think>\n{text}"
    if what == 3:
        return f"Sure:\n```json\n{text}\n```\nI hope {{this}} helps."
    if what == 4:
        return f"{json.dumps(spoil_json(value, chance))}\n{text}"
    if what == 5:
        return f"{text}\nThe answer says {json.dumps(spoil_json(value, chance))}."
    if what == 6:
        return chance.choice(
            [
                "",
                " ",
                "I cannot judge this.",
                "<think>hm",
                "</think>",
                "{" * 3000,
                "[" * 3000,
                '{"a":' * 3000,
                "\0",
                "null",
                "7",
            ]
        )
    if what == 7:
        return text[: chance.randrange(len(text))]
    if what == 8:
        return text.replace(":", ": " + chance.choice(["NaN", "Infinity", "-", "1e999", "'", '"<think>"']), 1)
    if what == 9:
        return "x" * chance.choice([10, 100_000]) + text
    if what == 10:
        return text.replace("{", '{"extra": ' + "[" * 50 + "]" * 50 + ", ", 1)
    return text
