"""Multiple choice, read and scored twice: as the paper means it (`strict`) and as the released `score_mcq.py` computes it (`official`).

Score = max(0, right - wrong chosen) / due, times a weight for the form of the reply: 1 for nothing but letters, 0.75 for letters with
separators (strict: or with their own option texts), 0.5 for anything longer. The official reader sees only letters that stand alone, so
that `BCD` is no answer and a key of several letters is no key: both score 0 (docs/errata.md).
"""

import re
import unicodedata
from collections.abc import Mapping

LETTERS = "ABCDEFG"
_ALONE = re.compile(r"\b([A-G])\b")
_RUN = re.compile(r"(?<![A-Za-z0-9])[A-G]+(?![A-Za-z0-9])")
_ONLY = re.compile(r"[A-G]+")
_SEPARATED = re.compile(r"[A-G\s,.;\-]+")
_NOT_WORD = re.compile(r"[^\w]+", re.UNICODE)
_OPTION = re.compile(r"^[ \t]*\(?([A-G])[.):][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_SMALL = re.compile(r"\W*[a-g](?:\s*[,;/&]\s*[a-g])*\W*")  # small letters, apart from one another: `b, c`; `bad` is a word
_LINE = re.compile(r"\W*([A-G])(?![A-Za-z0-9])[\s.):\-*]*(.*)", re.DOTALL)
_VERBS = ("is", "are", "was", "and", "or", "because", "as", "since", "for", "seems", "looks", "fits", "matches")


def options(question: str) -> dict[str, str]:
    """The options of a question by letter: lines such as `A. black`."""
    return dict(_OPTION.findall(question))


def key_letters(answer: str) -> set[str]:
    """The letters of an answer key, however they are written: `BCD`, `B, C, D`."""
    return set(re.sub(r"[^A-G]", "", answer.replace("<DYNAMIC>", "")))


def choice_of(response: str, offered: Mapping[str, str] | None = None) -> tuple[set[str], float]:
    """The letters a reply chooses, and the weight of its form."""
    text = _THOUGHT.sub(" ", unicodedata.normalize("NFKC", response)).strip()
    if not text:
        return set(), 0.0
    if _ONLY.fullmatch(text):
        return set(text), 1.0
    if _SMALL.fullmatch(text):
        return set(re.sub(r"[^a-g]", "", text).upper()), 0.75
    told = _by_lines(text, offered or {}) or _by_text(text, offered or {})
    if told:
        return told, 0.75
    for letter, option in (offered or {}).items():  # letters inside an option's own text are no choices
        text = re.sub(rf"(?<![A-Za-z0-9]){letter}[.):]?\s*{re.escape(option)}", f"{letter}. ", text)
    runs = [match for match in _RUN.finditer(text) if not _is_article(text, match)]
    chosen = {letter for match in runs for letter in match.group()}
    if not chosen:
        return set(), 0.0
    return chosen, 0.5 if _NOT_WORD.sub("", _rest(text, runs)) else 0.75


def score(response: str, answer: str, offered: Mapping[str, str] | None = None) -> float:
    """Strict: 0 to 1."""
    due = key_letters(answer)
    if not due:
        raise ValueError(f"the answer key {answer!r} has no letter")
    chosen, weight = choice_of(response, offered)
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
    """A lone `A` before a word in small letters is English, unless that word says something of option A: `A is right`."""
    following = re.match(r" ([a-z]+)", text[match.end() :])
    return match.group() == "A" and following is not None and following.group(1) not in _VERBS


def _rest(text: str, runs: list[re.Match[str]]) -> str:
    for match in reversed(runs):
        text = text[: match.start()] + text[match.end() :]
    return text


def _by_lines(text: str, offered: Mapping[str, str]) -> set[str]:
    """Letters of a reply whose every line is an option's letter, alone or with its own text; nothing otherwise."""
    chosen: set[str] = set()
    for line in filter(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line.strip())
        if match is None or _bare(match.group(2)) not in ("", _bare(offered.get(match.group(1), ""))):
            return set()
        chosen.add(match.group(1))
    return chosen


def _by_text(text: str, offered: Mapping[str, str]) -> set[str]:
    """A reply that is an option's own text and nothing else chooses it."""
    chosen = {letter for letter, option in offered.items() if _bare(option) and _bare(option) == _bare(text)}
    return chosen if len(chosen) == 1 else set()


def _bare(text: str) -> str:
    return _NOT_WORD.sub("", text).lower()
