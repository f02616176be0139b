"""How OpenING's released scripts show answers to their judge, and where a checkout of theirs has its prompts."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Text
from weft.untrusted import read_text_file

if TYPE_CHECKING:
    from PIL import Image as Pil

SYSTEM_PROMPTS = {
    "battle": (
        "prompts/judge_system.txt",
        "OpenING-Benchmark/judge_system.txt",
        "OpenING-benchmark/judge_system.txt",
    ),
    "criteria": ("prompts/detailed_score_system.txt",),
}
SCRIPTS = {"battle": "GPT_judge_AB.py", "criteria": "GPT_score_A.py"}
OPEN_JUDGE_SCRIPT = "IntJudge_judge_AB.py"  # for battles by local weights
OPEN_JUDGE_SETTINGS = {"max_tokens": 128}
NATIVE_IMAGES = "native images"  # the name of a text, which is empty: images are sent as they are
IMAGE_SIDE = 512  # of every other script's images, whatever their aspect ratio

TaggedSection = tuple[str, str, Sequence[Part]]  # its tag, the text that replaces it if it is empty, its parts
Step = tuple[str, Image | None]  # a text and the image that follows it


def read_official_rubrics(checkout: Path, which: str) -> Rubrics:
    """Return the released prompts for `battle` or `criteria`. Raises UserError if the checkout lacks them."""
    texts = {"system": read_system_prompt(checkout, which), "closing": read_closing_sentence(checkout, which)}
    return build_rubrics(texts, f"official {SCRIPTS[which]}")


def read_open_judge_rubrics(file: Path) -> Rubrics:
    """Return the prompts of a battle for an open judge such as IntJudge, which gets images as they are.

    `file` is `IntJudge_judge_AB.py` of a checkout, whose system message is in the script, or a text file with the
    system message of another judge, in the checkout or a folder of it. Raises UserError for anything else.
    """
    if file.suffix == ".py":
        script, system = file, _read_system_message(file)
    else:
        folder = next((folder for folder in file.absolute().parents if (folder / OPEN_JUDGE_SCRIPT).is_file()), None)
        if folder is None:
            raise UserError(
                f"{file} is in no checkout of OpenING's repository: no folder above it has {OPEN_JUDGE_SCRIPT}"
            )
        script, system = folder / OPEN_JUDGE_SCRIPT, read_text_file(file)
    texts = {"system": system, "closing": _find_closing_sentence(script), NATIVE_IMAGES: ""}
    return replace(build_rubrics(texts, f"official {file.name}"), settings=OPEN_JUDGE_SETTINGS)


def _read_system_message(script: Path) -> str:
    """Return the text that a script assigns to SYSTEM_MESSAGE."""
    for node in ast.walk(_parse_script(script)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "SYSTEM_MESSAGE" in names and isinstance(node.value.value, str):
            return node.value.value
    raise UserError(
        f"{script} has no text in SYSTEM_MESSAGE: give {OPEN_JUDGE_SCRIPT} of a checkout of OpenING's repository"
    )


def read_system_prompt(checkout: Path, which: str) -> str:
    for name in SYSTEM_PROMPTS[which]:
        if (checkout / name).is_file():
            return read_text_file(checkout / name)
    raise UserError(f"{checkout} has no {SYSTEM_PROMPTS[which][0]}: give a checkout of OpenING's repository")


def read_closing_sentence(checkout: Path, which: str) -> str:
    script = checkout / SCRIPTS[which]
    if not script.is_file():
        raise UserError(f"{checkout} has no {script.name}: give a checkout of OpenING's repository")
    return _find_closing_sentence(script)


def _parse_script(script: Path) -> ast.Module:
    try:
        return ast.parse(read_text_file(script))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"{script} cannot be read: {error}") from None


def _find_closing_sentence(script: Path) -> str:
    """Return the sentence that ends the question: the one string in the script that begins a line and ends with a
    colon."""
    sentences: set[str] = set()
    for node in ast.walk(_parse_script(script)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_closing_sentence(node.value):
            sentences.add(node.value)
    if len(sentences) != 1:
        raise UserError(
            f"{script} has {len(sentences)} sentences that could end its question where one is expected: is it another "
            "version?"
        )
    return sentences.pop()


def _is_closing_sentence(text: str) -> bool:
    return text.startswith("\n") and text.endswith((": ", ": \n")) and len(text) < 300 and "OUTPUT" not in text


def build_judge_messages(sections: Sequence[TaggedSection], rubrics: Rubrics, blobs: Blobs) -> tuple[Message, ...]:
    """Return the system prompt, and the steps of all sections under bare tags with the closing sentence after them.

    Images are numbered through all sections. The first section is the prompt.
    """
    is_native = NATIVE_IMAGES in rubrics.texts
    parts: list[Part] = []
    image_number = 0
    for section_index, (tag, empty_text, section_parts) in enumerate(sections):
        steps = split_steps(section_parts, is_prompt=section_index == 0)
        if not steps:
            parts.append(Text(empty_text))
        for step_index, (text, image) in enumerate(steps):
            if image is not None:
                text += f" <IMG_{image_number}></IMG_{image_number}>"
                image_number += 1
            if step_index == 0 and text:
                text = tag + text
            elif step_index == 0:
                text = empty_text
            parts.append(Text(text))
            if image is not None:
                parts.append(image if is_native else blobs.put_pil(squash_image(image, blobs)))
    parts.append(Text(rubrics.texts["closing"]))
    return Message("system", (Text(rubrics.texts["system"]),)), Message("user", tuple(parts))


def split_steps(parts: Sequence[Part], *, is_prompt: bool = False) -> list[Step]:
    """Split parts into texts, each with the image that follows it, as OpenING stores them.

    An answer's text is stripped before its markers are removed. A prompt was stripped when it was loaded: the spaces
    that its markers left at either end are sent.
    """
    steps: list[Step] = []
    for part in parts:
        if isinstance(part, Image):
            if steps and steps[-1][1] is None:
                steps[-1] = (steps[-1][0], part)
            else:
                steps.append(("", part))
        elif isinstance(part, Text):
            text = part.text
            if not is_prompt:
                text = text.strip()
            if text:
                steps.append((text.replace("<image>", ""), None))
    return steps


def squash_image(image: Image, blobs: Blobs) -> "Pil.Image":
    """Return the image at IMAGE_SIDE x IMAGE_SIDE, with the pixels that the released script computes."""
    with blobs.decode_within_memory(image) as pixels:
        if pixels.mode == "1":  # resized as it is: the script does not smooth a bilevel image
            return pixels.resize((IMAGE_SIDE, IMAGE_SIDE)).convert("RGB")
        return pixels.convert("RGB").resize((IMAGE_SIDE, IMAGE_SIDE))
