"""Multiple choice, read and scored twice: as the paper means it (`strict`) and as the released `score_mcq.py` computes it (`official`).

Score = max(0, right - wrong chosen) / due, times a weight for the form of the reply: 1 for nothing but letters, 0.75 for letters with
separators (strict: or with their own option texts), 0.5 for anything longer. The official reader sees only letters that stand alone, so
that `BCD` is no answer and a key of several letters is no key: both score 0 (docs/errata.md).
"""

import re
from collections.abc import Mapping

LETTERS = "ABCDEFG"
_ALONE = re.compile(r"\b([A-G])\b")
_RUN = re.compile(r"(?<![A-Za-z0-9])[A-G]+(?![A-Za-z0-9])")
_ONLY = re.compile(r"[A-G]+")
_SEPARATED = re.compile(r"[A-G\s,.;\-]+")
_NOT_WORD = re.compile(r"[^\w]+", re.UNICODE)
_OPTION = re.compile(r"^\s*([A-G])[.):]\s*(.+?)\s*$", re.MULTILINE)


def options(question: str) -> dict[str, str]:
    """The options of a question by letter: lines such as `A. black`."""
    return dict(_OPTION.findall(question))


def key_letters(answer: str) -> set[str]:
    """The letters of an answer key, however they are written: `BCD`, `B, C, D`."""
    return set(re.sub(r"[^A-G]", "", answer.replace("<DYNAMIC>", "")))


def read(response: str, offered: Mapping[str, str] | None = None) -> tuple[set[str], float]:
    """The letters a reply chooses, and the weight of its form."""
    text = response.strip()
    if not text:
        return set(), 0.0
    if _ONLY.fullmatch(text):
        return set(text), 1.0
    if re.fullmatch(r"[a-g]", text):  # a single small letter is an answer; a small word is not
        return {text.upper()}, 0.75
    runs = [match for match in _RUN.finditer(text) if not _is_article(text, match)]
    chosen = {letter for match in runs for letter in match.group()}
    if not chosen:
        return _by_text(text, offered or {})
    rest = _rest(text, runs)
    if not _NOT_WORD.sub("", rest):
        return chosen, 0.75
    told = "".join(_plain((offered or {}).get(letter, "")) for letter in sorted(chosen))
    spoken = "".join(_plain(piece) for piece in _pieces(text, runs))
    return chosen, 0.75 if told and spoken == told else 0.5


def score(response: str, answer: str, offered: Mapping[str, str] | None = None) -> float:
    """Strict: 0 to 1."""
    due = key_letters(answer)
    if not due:
        raise ValueError(f"the answer key {answer!r} has no letter")
    chosen, weight = read(response, offered)
    return _share(chosen, due) * weight


def official(response: str, answer: str) -> float:
    """What the released scorer gives, defects included: 0 to 1, rounded to four digits."""
    due, chosen = set(_ALONE.findall(answer)), set(_ALONE.findall(response))
    text = response.strip()
    if not due or not text:
        return 0.0
    weight = 1.0 if _ONLY.fullmatch(text) else 0.75 if _SEPARATED.fullmatch(text) else 0.5
    return round(_share(chosen, due) * weight, 4)


def _share(chosen: set[str], due: set[str]) -> float:
    return max(0.0, (len(chosen & due) - len(chosen - due)) / len(due))


def _is_article(text: str, match: re.Match[str]) -> bool:
    """A lone `A` before a word in small letters is English, not an option."""
    return match.group() == "A" and re.match(r" [a-z]", text[match.end() :]) is not None


def _rest(text: str, runs: list[re.Match[str]]) -> str:
    for match in reversed(runs):
        text = text[: match.start()] + text[match.end() :]
    return text


def _pieces(text: str, runs: list[re.Match[str]]) -> list[str]:
    """What stands after each chosen letter, in the letters' order."""
    ends = [*(match.start() for match in runs[1:]), len(text)]
    found = {match.group(): text[match.end() : end] for match, end in zip(runs, ends, strict=True)}
    return [text[: runs[0].start()], *(found[letters] for letters in sorted(found))]


def _by_text(text: str, offered: Mapping[str, str]) -> tuple[set[str], float]:
    """A reply that is an option's own text and nothing else chooses it."""
    chosen = {letter for letter, option in offered.items() if _plain(option) and _plain(option) == _plain(text)}
    return (chosen, 0.75) if len(chosen) == 1 else (set(), 0.0)


def _plain(text: str) -> str:
    return _NOT_WORD.sub("", text).lower()
