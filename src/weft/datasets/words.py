"""Frequent words of requests. Function words do not count, nor the numbers of images."""

import re
from collections import Counter
from collections.abc import Iterable

from weft.types import MENTION

WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
MIN_LENGTH = 3  # letters of a word in Latin script
MAX_LENGTH = 40  # characters of a word; a longer one is no word
MAX_WORDS = 500_000  # different words in memory; beyond it those that occurred once are dropped
FUNCTION_WORDS = """
    a about above across after again against all along also although always am among an and another any anyone
    anything are around as at away back be became because become been before behind being below beneath beside besides
    between both but by came can cannot come could did do does doing done don't down during each either else enough
    etc even ever every everyone everything few first for from further get give given go goes had has have having he
    her here hers him his how however i i'm if in inside instead into is isn't it it's its itself just keep last least
    less let like make makes many may me might mine more most much must my near need needs neither next no nor not
    nothing now of off on once one only onto or other others otherwise ought our ours out outside over own per please
    put rather same second see seen set several shall she should since so some someone something still such take than
    that that's the their theirs them themselves then there there's these they this those though through throughout
    thus to together too toward towards two under underneath until unto up upon us use used using very via want was
    way we well were what when where whether which while who whom whose why will with within without would yes yet you
    your yours three third image images
"""
IS_FUNCTION_WORD = frozenset(FUNCTION_WORDS.split())


class WordCounter:
    """How often words occur, and in how many dialogues."""

    def __init__(self) -> None:
        self.occurrences: Counter[str] = Counter()
        self.dialogues: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of one dialogue."""
        words: list[str] = []
        for text in texts:
            words += find_words(text)
        self.occurrences.update(words)
        self.dialogues.update(set(words))
        if len(self.occurrences) > MAX_WORDS:
            self._drop_rare()

    def most_common(self, count: int) -> list[tuple[str, int, int]]:
        """Return the most frequent words with their occurrences and dialogues, sorted descending."""
        ordered = sorted(self.occurrences.items(), key=lambda item: (-item[1], item[0]))
        return [(word, occurrences, self.dialogues[word]) for word, occurrences in ordered[:count]]

    def _drop_rare(self) -> None:
        for word in [word for word, count in self.occurrences.items() if count == 1]:
            del self.occurrences[word]
            del self.dialogues[word]


def find_words(text: str) -> list[str]:
    """Return the words of a text that say what it is about, in lower case."""
    words: list[str] = []
    for word in WORD.findall(MENTION.sub(" ", text).lower()):
        is_short = word.isascii() and len(word) < MIN_LENGTH
        if not is_short and len(word) <= MAX_LENGTH and word not in IS_FUNCTION_WORD:
            words.append(word)
    return words
