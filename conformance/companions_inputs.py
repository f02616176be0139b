"""What both sides of GEdit-Bench, ImgEdit, RISEBench, KRIS-Bench, GenEval and MM-Vet share: what was asked, what is said to it, and
random replies. The standard library alone: the released scripts' environment imports it, too."""

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BLOCK = 100  # replies whose readings are one fact

GEDIT = ["{", "}", "[", "]", "||V^=^V||", '"score"', '"reasoning"', ":", ",", " ", "\n", '"so"', "score", "7", "0", "10",
         "11", "3.5", "-1", "[7, 8]", "[7,8]", '{"score": [7, 8]}', '{"score": 5, "reasoning": "so"}', "null", "true",
         "NaN", "rate_limit_exceeded", "{score: 4}", '{"score": [], "x": 1}', "```json", "```", "well", "'"]  # fmt: skip
IMGEDIT = ["Prompt Compliance", "Visual Seamlessness", "Detail", "**", ": ", ":", "3", "4", "5", "0", "10", "4/5", "\u00b2",
           "\u0664", "\n", "\n", "\n", " ", "Brief reasoning: so", "Score: 4", "- ", ".", "\r\n", "\u2028", "7" * 12]  # fmt: skip
RISEBENCH = ["Final Score", "final score", "**Final Score:** ", "Final Score**", "Final Scores: ", ":", "*", "**", " ",
             "\n", "\n\n", "5", "4", "1", "0", ",", "1. ", "- ", "/5", "out of 5", "x", "Reasoning: so", "\u0665", "12",
             "7" * 12]  # fmt: skip
MMVET = ["0", "1", "0.", ".5", "0.5", "1.0", " ", "\n", "nan", "inf", "-", "+", "e-1", "_", "1.", "x", "\u0661", "\t",
         "because", ".", "0.75", "\u00a0", "%"]  # fmt: skip
KRIS = ["{", "}", '"consistency_score"', '"instruction_score"', '"knowledge_score"', ":", ",", " ", "\n", "3", "5", "9", "0",
        "4/5", "2 out of 5", '"reasoning": "so"', '{"consistency_score": 4}', '{"instruction_score": 3, "knowledge_score": 2}',
        '{"consistency_score": null}', '{"instruction_score": "5", "knowledge_score": 4.7}', "consistency score: 2",
        "Instruction_Score\uff1a4", "knowledge score 5", "knowledge_score: 1", "true", "NaN", "\u0664", "x1", "```json",
        '{"reasoning": {}, "consistency_score": 1}', "7" * 12]  # fmt: skip
PIECES = {"gedit": GEDIT, "imgedit": IMGEDIT, "risebench": RISEBENCH, "mmvet": MMVET,
          "kris": KRIS}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A request to a judge: its text, and digests of its images in order."""

    text: str
    images: tuple[str, ...]


def describe_request(asked: Asked) -> str:
    """A request as a fact."""
    return " ".join([hashlib.sha256(asked.text.encode()).hexdigest()[:12], *asked.images])


def choose_reply(asked: Asked, replies: Sequence[str]) -> str:
    """What is said to a request, which only its content decides."""
    number = int(hashlib.sha256(describe_request(asked).encode()).hexdigest(), 16)
    return replies[number % len(replies)]


def random_replies(system: str, count: int) -> list[str]:
    """Replies of pieces that each matter to some reader."""
    chance = random.Random(f"{system} replies")
    pieces = PIECES[system]
    return ["".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(count)]


def digest_blocks(readings: Iterable[object]) -> dict[str, str]:
    """Readings as facts: the digest of each block of them."""
    texts = [str(one) for one in readings]
    blocks = range(0, len(texts), BLOCK)
    return {f"{at:05}": hashlib.sha256("\n".join(texts[at : at + BLOCK]).encode()).hexdigest()[:12] for at in blocks}
