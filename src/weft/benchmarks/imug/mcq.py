"""Multiple choice, read and scored twice: as the paper means it (`strict`) and as the released `score_mcq.py` does.

Score = max(0, right - wrong letters chosen) / right letters in the key, times a weight for the form of the reply: 1 for
nothing but letters, 0.75 for letters with separators (strict: or with their own option texts), 0.5 for anything longer.
The released reader sees only letters that stand alone, so that `BCD` is no answer and a key of several letters is no
key: both score 0. How strict finds the letters in a longer reply is weft's own, since the paper has no rule for it
(docs/reference/errata.md lists what it does).
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
    """Return the options of a question by letter: lines such as `A. black`, or all of them on one line."""
    on_lines: dict[str, str] = dict(_OPTION.findall(question))
    inline = _find_inline_options(question)
    if len(inline) > len(on_lines):
        return inline
    return on_lines


def _find_inline_options(question: str) -> dict[str, str]:
    """Return options that follow one another, as in `A. black B. silver`: letters in their order, from A on."""
    matches: list[re.Match[str]] = []
    for match in _INLINE.finditer(question):
        if match.group(1) == "A":
            matches = [match]
        elif matches and match.group(1) == LETTERS[len(matches)]:
            matches.append(match)
    options: dict[str, str] = {}
    end = len(question)
    for match in reversed(matches):
        text = question[match.end() : end].partition("\n")[0].strip(" \t,;(")
        if text:
            options[match.group(1)] = text
        end = match.start()
    return dict(sorted(options.items()))


def parse_key(key: str) -> set[str] | None:
    """Return the letters of a key, however written: `BCD`; `B, C and D`; `(b)`. None if it holds anything else."""
    letters_only = _KEY_WORD.sub(" ", unicodedata.normalize("NFKC", key))
    words = [word for word in re.split(r"[\W_]+", letters_only) if word]
    if not words or not all(re.fullmatch("[A-G]+|[a-g]", word) for word in words):
        return None
    return set("".join(words).upper())


def read_choice(response: str, options: Mapping[str, str] | None = None) -> tuple[set[str], float]:
    """Return the letters that a reply chooses, and the weight of its form. `options` are the question's, by letter."""
    options = options or {}
    text = _BEFORE.sub(" ", _THOUGHT.sub(" ", unicodedata.normalize("NFKC", response))).strip()
    if not text:
        return set(), 0.0
    if _ONLY.fullmatch(text):
        return set(text), 1.0
    if _SMALL.fullmatch(text):
        return set(re.sub(r"[^a-g]", "", text).upper()), 0.75
    quoted = _read_option_lines(text, options) or _read_option_text(text, options)
    if quoted:
        return quoted, 0.75
    for letter, option in options.items():  # letters inside an option's own text are no choices
        text = re.sub(rf"(?<![A-Za-z0-9]){letter}[.):]?\s*{re.escape(option)}", f"{letter}. ", text)
    matches = [match for match in _RUN.finditer(text) if not _is_article(text, match)]
    letters = set("".join(match.group() for match in matches))
    if not letters:
        return set(), 0.0
    if _NOT_WORD.sub("", _remove(text, matches)):
        return letters, 0.5
    return letters, 0.75


def score_strict(response: str, answer: str, options: Mapping[str, str] | None = None) -> float:
    """Score a reply from 0 to 1 as the paper means it. Raises ValueError if the key `answer` has no letter."""
    key = set(re.sub(r"[^A-G]", "", answer.replace("<DYNAMIC>", "")))
    if not key:
        raise ValueError(f"the answer key {answer!r} has no letter")
    letters, weight = read_choice(response, options)
    return _share(letters, key) * weight


def find_standalone_letters(text: str) -> set[str]:
    """Return the letters that stand alone, the only ones that the released scorer sees."""
    return set(_ALONE.findall(text))


def score_as_released(response: str, answer: str) -> float:
    """Score a reply as the released scorer does, defects included: 0 to 1, rounded to four digits."""
    key = find_standalone_letters(answer)
    letters = find_standalone_letters(response)
    text = response.strip()
    if not key or not text:
        return 0.0
    weight = 0.5
    if _ONLY.fullmatch(text):
        weight = 1.0
    elif _SEPARATED.fullmatch(text):
        weight = 0.75
    return round(_share(letters, key) * weight, 4)


def _share(letters: set[str], key: set[str]) -> float:
    return max(0.0, (len(letters & key) - len(letters - key)) / len(key))


def _is_article(text: str, match: re.Match[str]) -> bool:
    """Whether a lone `A` is the English article.

    It is, before a word in small letters, unless that word says something about option A (`A is right`, `A shows ...`)
    or the letter is called an option (`Option A best matches`).
    """
    following = re.match(r" ([a-z]+)", text[match.end() :])
    if match.group() != "A" or following is None or _NAMED.search(text[: match.start()]):
        return False
    return _GOES_ON.fullmatch(following.group(1)) is None


def _remove(text: str, matches: list[re.Match[str]]) -> str:
    for match in reversed(matches):
        text = text[: match.start()] + text[match.end() :]
    return text


def _read_option_lines(text: str, options: Mapping[str, str]) -> set[str]:
    """Return the letters of a reply whose every line is an option's letter, alone or with its own text; else none."""
    letters: set[str] = set()
    for line in filter(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line.strip())
        if match is None or _normalize(match.group(2)) not in ("", _normalize(options.get(match.group(1), ""))):
            return set()
        letters.add(match.group(1))
    return letters


def _read_option_text(text: str, options: Mapping[str, str]) -> set[str]:
    """Return the letter of the one option whose text is the whole reply; else none."""
    normalized = _normalize(text)
    letters = {letter for letter, option in options.items() if _normalize(option) and _normalize(option) == normalized}
    if len(letters) == 1:
        return letters
    return set()


def _normalize(text: str) -> str:
    return _NOT_WORD.sub("", text).lower()
