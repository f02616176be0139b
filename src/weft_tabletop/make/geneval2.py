"""GenEval 2 on the tabletop: prompts about objects on a table with questions about their atoms, in the format of its
records.

A prompt says which object is in which cell, so that every answer follows from its words."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft_tabletop.make.files import write_lines
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world.language import fill_wording
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, SHAPES, Scene, Thing, list_things
from weft_tabletop.world.wordings import WORDINGS

KINDS = tuple(shape for shape in SHAPES if shape != "dot")
NUMBERS = ("one", "two", "three", "four")
ATOMS = range(3, 11)
Atom = tuple[str, str, str, Mapping[str, Any]]  # question, answer, skill, and what the answer follows from


def write_geneval2(out: Path, samples: int, seed: int) -> None:
    """Write so many prompts, of three to ten atoms in turn: `geneval2_data.jsonl` and the sidecar."""
    out.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for number in range(samples):
        count = ATOMS[number % len(ATOMS)]
        rng = random.Random(f"geneval2 {seed} {count} {number // len(ATOMS)}")
        placed, atoms = _make_prompt(count, rng)
        scene = Scene(rng.choice(tuple(BACKGROUNDS))).put(placed)
        args = {"background": scene.background, "things": list_things(scene)}
        record = {
            "prompt": fill_wording(rng.choice(WORDINGS["draw"]), args, {}),
            "atom_count": count,
            "vqa_list": [[question, answer] for question, answer, _, _ in atoms],
            "skills": [skill for _, _, skill, _ in atoms],
        }
        records.append(record)
        facts = [{**about, "skill": skill} for _, _, skill, about in atoms]
        references[f"{number:05}"] = {"turns": [{"scene": str(scene), "atoms": facts}]}
    write_lines(out / "geneval2_data.jsonl", records)
    write_sidecar(out, references)


def _make_prompt(count: int, rng: random.Random) -> tuple[dict[str, Thing], Sequence[Atom]]:
    """Return the objects of a prompt by cell, and so many atoms: groups of objects of one kind and colour."""
    shapes = rng.sample(KINDS, 4)
    colours = rng.sample(tuple(COLOURS), 4)
    cells = rng.sample(CELLS, len(CELLS))
    placed: dict[str, Thing] = {}
    atoms: list[Atom] = []
    for shape, colour in zip(shapes, colours, strict=True):
        if len(atoms) >= count:
            break
        number = rng.randint(1, len(NUMBERS))
        own = [cells.pop() for _ in range(number)]
        placed |= {cell: Thing(colour, shape) for cell in own}
        about = {"shape": shape, "colour": colour}
        several = "crosses" if shape == "cross" else f"{shape}s"
        question = f"How many {several} are in the image?"
        atoms.append((question, NUMBERS[number - 1], "count", {**about, "count": number}))
        atoms.append((f"Are the {several} {colour}?", "Yes", "attribute", about))
        atoms.append((f"Are there any {several} in the image?", "Yes", "object", about))
    return placed, atoms[:count]
