"""WeaverBench on the tabletop: tables that are built object by object, tables that drift image by image, single images,
and questions, in WeaverBench's format with the sidecar.

Every image and every sentence that is expected follows from the prompt, and is the reference."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft_tabletop.make.dialogues import DialogueMaker
from weft_tabletop.make.files import write_lines, write_named_image
from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, fill_wording
from weft_tabletop.world.operations import Operation, build_frames
from weft_tabletop.world.scenes import Scene
from weft_tabletop.world.wordings import QUESTIONS, WORDINGS

# What is asked, in which of its wordings (the first of `build` says `exactly`), and the category of such prompts.
PROMPTS = (
    ("build", 0, "Education Tutorial"),
    ("film", 0, "Document Guides"),
    ("build", 1, "Daily Life"),
    ("film", 1, "Reasoning"),
    ("draw", 0, "Art Creation"),
    ("question", 0, "Encyclopedic Knowledge"),
)
FREE = ("build", 1)  # does not say exactly how many images it wants
QUESTION_KINDS = ("count", "what", "colour")
PromptForm = tuple[str, int, str]
ChooseContent = Callable[[str, random.Random], tuple[dict[str, str], Scene | None]]


def write_weaver(out: Path, samples: int, seed: int) -> None:
    """Write so many prompts, of all kinds in turn, their images and the sidecar."""
    write_prompts(out, samples, seed, PROMPTS, _choose_content)


def write_prompts(out: Path, samples: int, seed: int, prompts: Sequence[PromptForm], choose: ChooseContent) -> None:
    """Write so many prompts of these forms, with the arguments and the table that are chosen for each."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    references: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    for number in range(samples):
        form = prompts[number % len(prompts)]
        records.append(_write_prompt(out, number // len(prompts) + 1, form, seed, choose, references))
    write_lines(out / "weaverbench.jsonl", records)
    write_sidecar(out, references)


def _write_prompt(
    out: Path, number: int, prompt_form: PromptForm, seed: int, choose: ChooseContent, references: dict[str, Any]
) -> dict[str, Any]:
    """Write the images of a prompt; add its reference, and return its record."""
    form, variant, category = prompt_form
    name = f"{form}-{number:03}{_suffix(form, variant)}"
    rng = random.Random(f"weaver {seed} {name}")
    kind = rng.choice(QUESTION_KINDS) if form == "question" else form
    args, base = choose(kind, rng)
    prompt: list[dict[str, str]] = [{"text": fill_wording(WORDINGS[kind][variant], args, {"image": "the table"})}]
    if base is not None:
        prompt.append({"image": write_named_image(out, f"{name}-i-0", base)})
    steps = expected_steps(kind, args, base)
    output: list[dict[str, str]] = []
    for index, (text, scene) in enumerate(steps):
        if text:
            output.append({"text": text})
        output.append({"image": write_named_image(out, f"{name}-o-{index}", scene)})
    reference: dict[str, Any] = {"kind": kind, "args": args}
    if kind in QUESTIONS:
        answer = answers.answer(TableRequest(kind, args, {}), {"image": base or Scene("white")})
        reference["answer"] = answer
        output = [{"text": answer}]
    references[name] = {"turns": [reference]}
    return {
        "id": name,
        "category": category,
        "input": prompt,
        "required_images": None if (form, variant) == FREE else len(steps),
        "length": "short",
        "output": output,
    }


def _suffix(form: str, variant: int) -> str:
    if (form, variant) == FREE:
        return "-free"
    if variant:
        return "-told"
    return ""


def _choose_content(kind: str, rng: random.Random) -> tuple[dict[str, str], Scene | None]:
    """Choose arguments, and the table that they are about, if any. In a film every image differs from the one
    before."""
    while True:
        base: Scene | None = None
        if kind not in ("build", "draw"):
            base = start_scene([kind], rng)
        maker = DialogueMaker("", [base] if base else [], rng)
        content = MAKERS[kind](maker, 1 if base else 0)
        if content is None:
            continue
        args, _ = content
        if kind == "film":
            scenes = [base, *(scene for _, scene in expected_steps(kind, args, base))]
            if any(before == after for before, after in itertools.pairwise(scenes)):
                continue
        return args, base


def expected_steps(kind: str, args: Mapping[str, str], base: Scene | None) -> list[tuple[str, Scene]]:
    """The expected output: the text and the scene of each step. A question has none."""
    if kind in QUESTIONS:
        return []
    if kind == "draw":
        return [("", Operation(kind, args).apply(Scene("white")))]
    return build_frames(kind, args, base)
