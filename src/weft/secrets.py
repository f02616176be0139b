"""Secrets are never stored or shown. `hide` registers one; `scrub` removes every registered secret from a text that
came from outside, whole or in part, plain or in any of the encodings in which servers echo what they were sent.

A fragment of eight letters that looks random is enough to be removed, so that a text cut in the middle of a key gives
nothing away; a fragment that looks like words must be most of the key. A placeholder (`none`, `EMPTY`) is never hidden.

The encodings: plain, either case, read as Latin-1, percent signs, HTML entities, backslash escapes, base64 and
hexadecimal, one inside another.
"""

import base64
import binascii
import html
import os
import re
import urllib.parse
from collections.abc import Iterator

MIN_LENGTH = 8  # letters of a secret, or of a fragment of one
BLOCK = 4  # any fragment of 2 * BLOCK - 1 letters contains a whole aligned block of the secret
REDACTED = "[key]"
MIN_WORDLIKE_LENGTH = 16  # letters of a fragment that looks like words
MAX_ENCODINGS = 2  # encodings inside each other
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
HEX_DIGITS = set("0123456789abcdefABCDEF")
WORD = re.compile(r"[^\s\"'<>`,{}\[\]()]{8,}")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{11,}")
ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{3})|(.))", re.DOTALL)
ADDRESS = re.compile(r"([a-z]+://)(?:[^/\s,?#]*@)?([^\s,?#]*)(?:[?#][^\s,]*)?", re.IGNORECASE)
_hidden: dict[str, tuple[str, bool]] = {}  # lower case -> the secret, and whether fragments of it are removed


def hide(secret: str) -> None:
    """Register a secret: from now on `scrub` removes it, and fragments of it."""
    _hide(secret, fragments=True)


def hide_environment() -> None:
    """Register every environment variable that is named like a secret; only the whole value is removed."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and _is_plausible_secret(value):
            _hide(value, fragments=False)
        if name.upper().endswith("_PROXY") and "@" in value:
            password = value.rpartition("@")[0].rpartition(":")[2]
            _hide(urllib.parse.unquote(password), fragments=False)


def scrub(text: str) -> str:
    """Return the text with every hidden secret replaced. A word that holds one in an encoding goes as a whole."""
    if not _hidden or len(text) < MIN_LENGTH:
        return text
    spans = list(_find_plain(text))
    if any(character in text for character in "%&\\"):
        for match in WORD.finditer(text):
            word = match.group()
            if _unescape(word) != word and _contains_secret(word):
                spans.append(match.span())
    spans += [match.span() for match in ENCODED.finditer(text) if _decodes_to_secret(match.group(), MAX_ENCODINGS)]
    if not spans:
        return text
    pieces: list[str] = []
    end = 0
    for low, high in sorted(spans):
        if low >= end:
            pieces += [text[end:low], REDACTED]
        end = max(end, high)
    return "".join([*pieces, text[end:]])


def strip_url_secrets(text: str) -> str:
    """Return the text with every address reduced: no user, password, query or fragment."""
    return scrub(ADDRESS.sub(r"\1\2", text))


def _is_plausible_secret(value: str) -> bool:
    """Return whether a variable's value can be a key: not a path, an address or a sentence."""
    if not 12 <= len(value) <= 4096 or value.startswith(("/", ".", "~")):
        return False
    return not re.search(r"\s|://", value)


def _hide(secret: str, *, fragments: bool) -> None:
    secret = secret.strip()
    if len(secret) < MIN_LENGTH:
        return
    if len(secret) < MIN_WORDLIKE_LENGTH and not _is_random(secret):
        return
    misread = secret.encode().decode("latin-1")  # by a server that does not know UTF-8
    for form in {secret, misread}:
        lower = form.translate(LOWER)
        _, before = _hidden.get(lower, (form, False))
        _hidden[lower] = (form, fragments or before)


def _is_random(text: str) -> bool:
    """Return whether a text looks like no word: letters with digits, capitals inside, or several kinds of marks."""
    if len(set(text)) <= 4:
        return False
    letters = sum(character.isalpha() for character in text)
    if letters > 1 and any(character.isdigit() for character in text):
        return True
    marks = sum(not character.isalnum() and character not in "-_. " for character in text)
    if marks > 2:
        return True
    return text[1:] != text[1:].lower() and text != text.upper()


def _is_revealing(secret: str, low: int, high: int, fragments: bool) -> bool:
    """Return whether secret[low:high] gives the secret away."""
    length = high - low
    if length == len(secret) or not fragments:
        return length == len(secret)
    if length >= max(MIN_WORDLIKE_LENGTH, len(secret) * 3 // 4):
        return True
    enough = MIN_LENGTH
    if set(secret.lower()) <= set("0123456789abcdef-"):
        enough = MIN_WORDLIKE_LENGTH
    return length >= enough and _is_random(secret[low:high])


def _find_plain(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans where a secret, or enough of one, stands unencoded."""
    lower = text.translate(LOWER)
    for secret, (written, fragments) in list(_hidden.items()):  # another thread may hide one meanwhile
        for block in range(0, len(secret) - BLOCK + 1, BLOCK):
            start = lower.find(secret[block : block + BLOCK])
            while start != -1:
                low, high = _extend(lower, secret, start, block)
                offset = block - start
                if _is_revealing(written, low + offset, high + offset, fragments):
                    yield low, high
                start = lower.find(secret[block : block + BLOCK], high)


def _extend(text: str, secret: str, start: int, block: int) -> tuple[int, int]:
    """Return the longest span around text[start] that equals the secret around secret[block]."""
    offset = block - start
    low = start
    high = start + BLOCK
    while low > 0 and low + offset > 0 and text[low - 1] == secret[low + offset - 1]:
        low -= 1
    while high < len(text) and high + offset < len(secret) and text[high] == secret[high + offset]:
        high += 1
    return low, high


def _contains_secret(text: str, depth: int = MAX_ENCODINGS) -> bool:
    if next(_find_plain(text), None) is not None:
        return True
    if not depth:
        return False
    unescaped = _unescape(text)
    if unescaped != text and _contains_secret(unescaped, depth - 1):
        return True
    return any(_decodes_to_secret(match.group(), depth) for match in ENCODED.finditer(text))


def _decodes_to_secret(word: str, depth: int) -> bool:
    return any(_contains_secret(decoded, depth - 1) for decoded in _decode(word))


def _unescape(text: str) -> str:
    """Remove one layer of percent signs, HTML entities and backslashes."""
    if "%" in text:
        text = urllib.parse.unquote(text, errors="replace")
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        return ESCAPE.sub(_unescape_letter, text)
    return text


def _unescape_letter(match: re.Match[str]) -> str:
    wide, narrow, octal, letter = match.groups()
    if letter:
        return letter
    if octal:
        return chr(int(octal, 8))
    return chr(int(wide or narrow, 16))


def _decode(word: str) -> Iterator[str]:
    """Yield what a word decodes to as hexadecimal or base64, from every possible start."""
    if set(word) <= HEX_DIGITS:
        for start in (0, 1):
            length = (len(word) - start) // 2 * 2
            yield binascii.unhexlify(word[start : start + length]).decode("latin-1")
    standard = word.replace("-", "+").replace("_", "/")
    for start in range(4):
        piece = standard[start:]
        padding = "A" * (-len(piece) % 4)
        yield base64.b64decode(piece + padding).decode("latin-1")


hide_environment()
