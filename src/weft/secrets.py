"""What must never be kept or shown: keys. `hide` tells of one; `scrub` cuts every hidden one out of a text that came
from outside, whole or in part, plain or in any of the encodings in which servers echo what they were sent.

A part of eight letters that looks like nothing but a key is enough to be cut out, so that a text that was cut in the
middle of a key gives nothing away; what looks like words must be most of the key. What is no key but a word (`none`,
`EMPTY`, `placeholder`) is left alone.

The encodings: as it is, in either case, read as Latin-1, percent signs, HTML entities, backslashes, base64 and
hexadecimal, one inside another."""

import base64
import binascii
import html
import os
import re
import urllib.parse
from collections.abc import Iterator

SHORTEST = 8  # letters of a key, or of a part of one
BLOCK = 4  # a part of 2 * BLOCK - 1 letters has a whole aligned block of the key in it
MARK = "[key]"
LONG = 16  # letters of what looks like words
DEEPEST = 2  # encodings inside each other
NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
WORD = re.compile(r"[^\s\"'<>`,{}\[\]()]{8,}")
PACKED = re.compile(r"[A-Za-z0-9+/_-]{11,}")
ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{3})|(.))", re.DOTALL)
ADDRESS = re.compile(r"([a-z]+://)(?:[^/\s,?#]*@)?([^\s,?#]*)(?:[?#][^\s,]*)?", re.IGNORECASE)
_hidden: dict[str, tuple[str, bool]] = {}  # in small letters -> as it is, and whether parts of it count


def hide(secret: str) -> None:
    """From now on it is cut out of everything that is scrubbed."""
    _hide(secret, parts=True)


def hide_environment() -> None:
    """Everything in the environment that is called a key, a token, a secret or a password; of these the whole alone."""
    for name, value in os.environ.items():
        if (
            NAMES.search(name)
            and 12 <= len(value) <= 4096
            and not value.startswith(("/", ".", "~"))
            and not re.search(r"\s|://", value)
        ):
            _hide(value, parts=False)
        if name.upper().endswith("_PROXY") and "@" in value:
            _hide(urllib.parse.unquote(value.rpartition("@")[0].rpartition(":")[2]), parts=False)


def _hide(secret: str, *, parts: bool) -> None:
    secret = secret.strip()
    if len(secret) < SHORTEST or (len(secret) < LONG and not _is_random(secret)):
        return
    for form in {secret, secret.encode().decode("latin-1")}:  # as it is, and as a server reads it that knows no UTF-8
        low = form.translate(LOWER)
        _hidden[low] = (form, parts or _hidden.get(low, (form, False))[1])


def _is_random(text: str) -> bool:
    """Whether it looks like nothing that people write: letters and digits together, capitals in the middle, marks of
    many kinds."""
    mixed = any(char.isdigit() for char in text) and sum(char.isalpha() for char in text) > 1
    marks = sum(not char.isalnum() and char not in "-_. " for char in text) > 2
    return len(set(text)) > 4 and (mixed or marks or (text[1:] != text[1:].lower() and text != text.upper()))


def _is_enough(secret: str, low: int, high: int, parts: bool) -> bool:
    """Whether so much of a secret gives it away."""
    length = high - low
    whole = len(secret)
    if length == whole or not parts:
        return length == whole
    plain = set(secret.lower()) <= set("0123456789abcdef-")
    return length >= max(LONG, whole * 3 // 4) or (
        length >= (LONG if plain else SHORTEST) and _is_random(secret[low:high])
    )


def scrub(text: str) -> str:
    """The text without anything hidden. What holds it in another encoding goes as a whole word."""
    if not _hidden or len(text) < SHORTEST:
        return text
    spans = list(_plain(text))
    if any(mark in text for mark in "%&\\"):
        spans += [
            match.span()
            for match in WORD.finditer(text)
            if _unescaped(match.group()) != match.group() and _holds(match.group())
        ]
    spans += [
        match.span()
        for match in PACKED.finditer(text)
        if any(_holds(one, DEEPEST - 1) for one in _unpacked(match.group()))
    ]
    if not spans:
        return text
    made: list[str] = []
    end = 0
    for low, high in sorted(spans):
        if low >= end:
            made += [text[end:low], MARK]
        end = max(end, high)
    return "".join([*made, text[end:]])


def strip_url_secrets(text: str) -> str:
    """Any addresses in a text as they may be kept and told: without user, password, query and fragment."""
    return scrub(ADDRESS.sub(r"\1\2", text))


def _plain(text: str) -> Iterator[tuple[int, int]]:
    """Where a hidden text, or enough of it, stands as it is."""
    small = text.translate(LOWER)
    for secret, (written, parts) in list(_hidden.items()):  # another thread may hide one meanwhile
        for at in range(0, len(secret) - BLOCK + 1, BLOCK):
            found = small.find(secret[at : at + BLOCK])
            while found != -1:
                low = found
                high = found + BLOCK
                while low > 0 and low > found - at and small[low - 1] == secret[at - (found - low) - 1]:
                    low -= 1
                while (
                    high < len(small) and at + high - found < len(secret) and small[high] == secret[at + high - found]
                ):
                    high += 1
                if _is_enough(written, at - (found - low), at + (high - found), parts):
                    yield low, high
                found = small.find(secret[at : at + BLOCK], high)


def _holds(text: str, deep: int = DEEPEST) -> bool:
    if next(_plain(text), None) is not None:
        return True
    if not deep:
        return False
    plainer = _unescaped(text)
    if plainer != text and _holds(plainer, deep - 1):
        return True
    return any(_holds(one, deep - 1) for match in PACKED.finditer(text) for one in _unpacked(match.group()))


def _unescaped(text: str) -> str:
    """One layer less of percent signs, entities and backslashes."""
    if "%" in text:
        text = urllib.parse.unquote(text, errors="replace")
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        return ESCAPE.sub(_letter, text)
    return text


def _letter(match: re.Match[str]) -> str:
    wide, narrow, octal, itself = match.groups()
    return itself or chr(int(wide or narrow or octal, 8 if octal else 16))


def _unpacked(word: str) -> Iterator[str]:
    """What a word says if it is base64 or hexadecimal, beginning anywhere in it."""
    if all(char in "0123456789abcdefABCDEF" for char in word):
        for start in (0, 1):
            yield binascii.unhexlify(word[start : start + (len(word) - start) // 2 * 2]).decode("latin-1")
    usual = word.replace("-", "+").replace("_", "/")
    for start in range(4):
        piece = usual[start:]
        yield base64.b64decode(piece + "A" * (-len(piece) % 4)).decode("latin-1")


hide_environment()
