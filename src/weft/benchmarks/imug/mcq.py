"""Multiple choice, read and scored twice: as the paper means it (`strict`) and as the released `score_mcq.py` computes
it (`official`).

Score = max(0, right - wrong chosen) / due, times a weight for the form of the reply: 1 for nothing but letters, 0.75
for letters with separators (strict: or with their own option texts), 0.5 for anything longer. The official reader sees
only letters that stand alone, so that `BCD` is no answer and a key of several letters is no key: both score 0. How
strict finds the letters in a longer reply is ours, not the paper's, which has no rule for it (docs/errata.md lists what
it does)."""

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
_INLINE = re.compile(r"(?:(?<=[\s,;:])|^)\(?([A-G])[.):][ \t]*(?=\S)", re.MULTILINE)
_TAGS = "(?:think|thinking|thought|reasoning)"
_THOUGHT = re.compile(rf"[<\[]{_TAGS}[>\]].*?(?:[<\[]/{_TAGS}[>\]]|\Z)", re.DOTALL | re.IGNORECASE)
_BEFORE = re.compile(rf"\A.*[<\[]/{_TAGS}[>\]]", re.DOTALL | re.IGNORECASE)  # thinking that the model's template opened
_KEY_WORD = re.compile(r"\b(?:and|or|both|options?|answers?|choices?)\b", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:option|answer|choice|letter)s?[\s:(*\"']*\Z", re.IGNORECASE)
# small letters, apart from one another: `b, c`; `bad` is a word
_SMALL = re.compile(r"\W*[a-g](?:\s*[,;/&]\s*[a-g])*\W*")
_LINE = re.compile(r"\W*([A-G])(?![A-Za-z0-9])[\s.):\-*]*(.*)", re.DOTALL)
_GOES_ON = re.compile(  # what follows a letter that is meant, where after an article a noun or an adjective would
    r"(?:is|are|was|were|be|has|have|had|does|did|do|can|could|will|would|shall|should|must|may|might|and|or|nor|but|not|only|alone|too|also|"
    r"because|as|since|for|if|then|so|while|whereas|than|best|most|clearly|correctly|exactly|really|seems|seem|looks|look|fits|fit|matches|"
    r"match|shows|show|depicts|depict|displays|display|contains|contain|includes|include|appears|appear|remains|describes|describe|"
    r"corresponds|represents|indicates|reflects|gives|makes|works|holds|applies|follows|satisfies|states|says|means|illustrates|suits|goes|"
    r"wins|comes|stands|stays|uses|gets|keeps|lies|sits|with|without|from|in|on|at|by|to)"
)


def find_options(question: str) -> dict[str, str]:
    """The options of a question by letter: lines such as `A. black`, or all of them on one line."""
    lines = dict(_OPTION.findall(question))
    inline = _on_one_line(question)
    if len(inline) > len(lines):
        return inline
    return lines


def _on_one_line(question: str) -> dict[str, str]:
    """Options that follow one another, `A. black B. silver`: letters in their order, from A on."""
    marks: list[re.Match[str]] = []
    for match in _INLINE.finditer(question):
        if match.group(1) == "A":
            marks = [match]
        elif marks and match.group(1) == LETTERS[len(marks)]:
            marks.append(match)
    ends = [*(mark.start() for mark in marks[1:]), *([len(question)] if marks else [])]
    texts = [
        question[mark.end() : end].partition("\n")[0].strip(" \t,;(") for mark, end in zip(marks, ends, strict=True)
    ]
    return {mark.group(1): text for mark, text in zip(marks, texts, strict=True) if text}


def parse_key(key: str) -> set[str] | None:
    """The letters of a key however it is written: `BCD`; `B, C and D`; `(b)`. None if it holds anything else."""
    words = [word for word in re.split(r"[\W_]+", _KEY_WORD.sub(" ", unicodedata.normalize("NFKC", key))) if word]
    if not words or not all(re.fullmatch("[A-G]+|[a-g]", word) for word in words):
        return None
    return set("".join(words).upper())


def key_letters(answer: str) -> set[str]:
    """The letters of an answer key, however they are written: `BCD`, `B, C, D`."""
    return set(re.sub(r"[^A-G]", "", answer.replace("<DYNAMIC>", "")))


def read_choice(response: str, offered: Mapping[str, str] | None = None) -> tuple[set[str], float]:
    """The letters a reply chooses, and the weight of its form."""
    text = _BEFORE.sub(" ", _THOUGHT.sub(" ", unicodedata.normalize("NFKC", response))).strip()
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


def score_strict(response: str, answer: str, offered: Mapping[str, str] | None = None) -> float:
    """Strict: 0 to 1."""
    due = key_letters(answer)
    if not due:
        raise ValueError(f"the answer key {answer!r} has no letter")
    chosen, weight = read_choice(response, offered)
    return _share(chosen, due) * weight


def find_standalone_letters(text: str) -> set[str]:
    """Letters that stand alone."""
    return set(_ALONE.findall(text))


def score_as_released(response: str, answer: str) -> float:
    """What the released scorer gives, defects included: 0 to 1, rounded to four digits."""
    due = find_standalone_letters(answer)
    chosen = find_standalone_letters(response)
    text = response.strip()
    if not due or not text:
        return 0.0
    if _ONLY.fullmatch(text):
        weight = 1.0
    else:
        if _SEPARATED.fullmatch(text):
            weight = 0.75
        else:
            weight = 0.5
    return round(_share(chosen, due) * weight, 4)


def _share(chosen: set[str], due: set[str]) -> float:
    return max(0.0, (len(chosen & due) - len(chosen - due)) / len(due))


def _is_article(text: str, match: re.Match[str]) -> bool:
    """A lone `A` before a word in small letters is English, unless that word says something of option A (`A is right`,
    `A shows ...`), or it is called an option (`Option A best matches`)."""
    following = re.match(r" ([a-z]+)", text[match.end() :])
    if match.group() != "A" or following is None or _NAMED.search(text[: match.start()]):
        return False
    return _GOES_ON.fullmatch(following.group(1)) is None


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
    if len(chosen) == 1:
        return chosen
    return set()


def _bare(text: str) -> str:
    return _NOT_WORD.sub("", text).lower()
