"""How OpenING's released scripts lay answers before their judge, and where a checkout of theirs has its prompts."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Text
from weft.untrusted import read_text_file

if TYPE_CHECKING:
    from PIL import Image as Pil

SYSTEMS = {
    "battle": ("prompts/judge_system.txt", "OpenING-Benchmark/judge_system.txt", "OpenING-benchmark/judge_system.txt"),
    "criteria": ("prompts/detailed_score_system.txt",),
}
SCRIPTS = {"battle": "GPT_judge_AB.py", "criteria": "GPT_score_A.py"}
SIDE = 512  # of every picture, whatever its shape
# a section's tag, what stands for it where there is nothing, and what it holds
Tagged = tuple[str, str, Sequence[Part]]


def read_official_rubrics(checkout: Path, which: str) -> Rubrics:
    texts = {"system": read_system_prompt(checkout, which), "closing": read_closing_sentence(checkout, which)}
    return build_rubrics(texts, f"official {SCRIPTS[which]}")


def read_system_prompt(checkout: Path, which: str) -> str:
    found = next((checkout / place for place in SYSTEMS[which] if (checkout / place).is_file()), None)
    if found is None:
        raise UserError(f"{checkout} has no {SYSTEMS[which][0]}: give a checkout of OpenING's repository")
    return read_text_file(found)


def read_closing_sentence(checkout: Path, which: str) -> str:
    """The sentence that ends their question, from their script: the one text there that begins a line and ends with a
    colon."""
    script = checkout / SCRIPTS[which]
    if not script.is_file():
        raise UserError(f"{checkout} has no {script.name}: give a checkout of OpenING's repository")
    try:
        tree = ast.parse(read_text_file(script))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"{script} cannot be read: {error}") from None
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    ends = [text for text in texts if text.startswith("\n") and text.endswith(": ") and len(text) < 300]
    found = dict.fromkeys(text for text in ends if "OUTPUT" not in text)
    if len(found) != 1:
        raise UserError(
            f"{script} has {len(found)} sentences that could end its question where one is known: is it another version?"
        )
    return next(iter(found))


def build_judge_messages(sections: Sequence[Tagged], rubrics: Rubrics, blobs: Blobs) -> tuple[Message, ...]:
    """Steps of words and pictures under bare tags, the count of pictures running through all of them; then the closing
    sentence."""
    parts: list[Part] = []
    number = 0
    for place, (tag, empty, some) in enumerate(sections):
        steps = split_steps(some, asked=not place)
        parts += [Text(empty)] if not steps else []
        for at, (text, image) in enumerate(steps):
            said = text
            if image is not None:
                said += f" <IMG_{number}></IMG_{number}>"
                number += 1
            parts.append(Text(said if at else tag + said if said else empty))
            parts += [blobs.put_pil(squash_image(image, blobs))] if image is not None else []
    parts.append(Text(rubrics.texts["closing"]))
    return Message("system", (Text(rubrics.texts["system"]),)), Message("user", tuple(parts))


def split_steps(parts: Sequence[Part], *, asked: bool = False) -> list[tuple[str, Image | None]]:
    """Words with the picture that follows them, as OpenING keeps them. Spaces around an answer's words go before its
    markers do; what is asked has been through that, and those that its markers left at an end are sent."""
    steps: list[tuple[str, Image | None]] = []
    for part in parts:
        if isinstance(part, Image):
            if steps and steps[-1][1] is None:
                steps[-1] = (steps[-1][0], part)
            else:
                steps.append(("", part))
        elif isinstance(part, Text):
            if asked:
                words = part.text
            else:
                words = part.text.strip()
            steps += [(words.replace("<image>", ""), None)] if words else []
    return steps


def squash_image(image: Image, blobs: Blobs) -> "Pil.Image":
    with blobs.decode_within_memory(image) as opened:
        bits = opened.mode == "1"  # such a picture is not smoothed
        return (opened if bits else opened.convert("RGB")).resize((SIDE, SIDE)).convert("RGB")
