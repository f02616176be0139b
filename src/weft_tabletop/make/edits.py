"""Single edits of tables in the formats of GEdit-Bench, RISEBench, ImgEdit and KRIS-Bench, each with its sidecar.

Every class of the official tables has a kind of request, so that every column has numbers. The words are the
tabletop's own."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft_tabletop.make.dialogues import DialogueMaker, TableTurn
from weft_tabletop.make.files import write_image, write_lines, write_named_image
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world.language import describe_scene, phrase_request
from weft_tabletop.world.scenes import Scene

GEDIT_KINDS: Mapping[str, str] = {
    "background_change": "background",
    "color_alter": "recolour",
    "material_alter": "trait",
    "motion_change": "move",
    "ps_human": "swap",
    "style_change": "mirror",
    "subject-add": "add",
    "subject-remove": "remove",
    "subject-replace": "replace",
    "text_change": "pattern",
    "tone_transfer": "rotate",
}
RISE_KINDS: Mapping[str, tuple[tuple[str, str], ...]] = {  # sub-tasks of each category, with their kinds
    "temporal": (("Life Progression", "hours"), ("Environmental Cycles", "drift")),
    "causal": (("Physics Manifestation", "gravity"), ("State Transition", "trait")),
    "spatial": (("Viewpoint Generation", "rotate"), ("Layout Reasoning", "mirror")),
    "logical": (("Pattern Prediction", "pattern"), ("Mathematical Derivation", "sum")),
}
IMGEDIT_KINDS: Mapping[str, str] = {
    "add": "add",
    "adjust": "recolour",
    "extract": "one less",
    "replace": "replace",
    "remove": "remove",
    "background": "background",
    "style": "mirror",
    "compose": "swap",
    "action": "move",
}
UGE_KINDS = ("pattern", "trait", "route")
DIALOGUE_KINDS: Mapping[str, tuple[str, ...]] = {  # the tasks of dialogues, with what they ask for
    "content_memory": ("add", "recolour", "one more"),
    "content_understanding": ("gravity", "mirror", "drift"),
    "version_backtracking": ("remove", "background", "put back"),
}
IMGEDIT_SUITES = (*("basic",) * 3, "uge", *("basic",) * 3, "uge", "multi-turn", "multi-turn")  # in turn
KRIS_KINDS: Mapping[str, str] = {
    "count_change": "one more",
    "color_change": "recolour",
    "size_adjustment": "trait",
    "part_completion": "add",
    "anomaly_correction": "remove",
    "position_movement": "move",
    "viewpoint_change": "rotate",
    "humanities": "swap",
    "practical_knowledge": "replace",
    "biology": "drift",
    "physics": "gravity",
    "mathematics": "sum",
    "abstract_reasoning": "pattern",
    "rule-based_reasoning": "hours",
    "multi-instruction_execution": "mirror",
}
FREE_RATE = 0.2  # how often nothing has to stay as it was
IMAGE_RATE = 0.5  # how often the right result is an image, where it may be one
INTERSECTION_RATE = 0.5  # how often a request is in the intersection


def write_gedit(out: Path, samples: int, seed: int) -> None:
    """Write so many requests in English, the tasks in turn: `gedit.jsonl`, `images/`, and the sidecar."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    tasks = tuple(GEDIT_KINDS)
    records: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for number in range(samples):
        task = tasks[number % len(tasks)]
        key = f"{task}_{number // len(tasks) + 1:03}"
        rng = random.Random(f"gedit {seed} {key}")
        turn, base = make_edit(GEDIT_KINDS[task], rng)
        references[f"en-{key}"] = {"turns": [{"kind": turn.kind, "args": turn.args}]}
        record = {
            "task_type": task,
            "key": key,
            "instruction": turn.text,
            "instruction_language": "en",
            "input_image": write_named_image(out, key, base),
            "Intersection_exist": rng.random() < INTERSECTION_RATE,
        }
        records.append(record)
    write_lines(out / "gedit.jsonl", records)
    write_sidecar(out, references)


def write_risebench(out: Path, samples: int, seed: int) -> None:
    """Write so many requests, the categories in turn: `risebench.json`, `images/`, and the sidecar."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    categories = tuple(RISE_KINDS)
    records: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for number in range(samples):
        category = categories[number % len(categories)]
        round_number = number // len(categories)
        subtask, kind = RISE_KINDS[category][round_number % 2]
        index = f"{category}_reasoning_{round_number + 1}"
        rng = random.Random(f"risebench {seed} {index}")
        turn, base = make_edit(kind, rng)
        assert turn.scene is not None
        references[index] = {"turns": [{"kind": turn.kind, "args": turn.args}]}
        record: dict[str, Any] = {
            "index": index,
            "category": f"{category}_reasoning",
            "subtask": subtask,
            "instruction": turn.text,
            "image": write_named_image(out, index, base),
        }
        if category in ("spatial", "logical") and rng.random() < IMAGE_RATE:
            record["reference_img"] = write_named_image(out, f"{index}_reference", turn.scene)
        elif category == "logical":
            record["reference_txt"] = describe_scene(turn.scene)
        else:
            record["reference"] = describe_scene(turn.scene)
        if category != "logical" and rng.random() < FREE_RATE:
            record["consistency_free"] = True
        records.append(record)
    (out / "risebench.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    write_sidecar(out, references)


def write_kris(out: Path, samples: int, seed: int) -> None:
    """Write so many requests, the categories in turn: `CATEGORY/annotation.json`, images, and the sidecar."""
    references: dict[str, Any] = {}
    files: dict[str, dict[str, Any]] = {}
    categories = tuple(KRIS_KINDS)
    for number in range(samples):
        category = categories[number % len(categories)]
        key = str(number // len(categories) + 1)
        rng = random.Random(f"kris {seed} {category} {key}")
        turn, base = make_edit(KRIS_KINDS[category], rng)
        assert turn.scene is not None
        (out / category).mkdir(parents=True, exist_ok=True)
        write_image(out / category / f"{key}.png", base)
        item = {"ori_img": f"{key}.png", "gt_img": "", "ins_en": turn.text, "explain_en": describe_scene(turn.scene)}
        if category == "viewpoint_change":
            item["gt_img"] = f"{key}_gt.png"
            write_image(out / category / item["gt_img"], turn.scene)
        files.setdefault(category, {})[key] = item
        references[f"{category}-{key}"] = {"turns": [{"kind": turn.kind, "args": turn.args}]}
    for category, items in files.items():
        (out / category / "annotation.json").write_text(json.dumps(items, indent=1) + "\n", encoding="utf-8")
    write_sidecar(out, references)


def write_imgedit(out: Path, samples: int, seed: int) -> None:
    """Write so many items of the three suites, six of ten basic: their files, `images/`, and the sidecar."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    references: dict[str, Any] = {}
    files: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for number in range(samples):
        suite = IMGEDIT_SUITES[number % len(IMGEDIT_SUITES)]
        count = counts.setdefault(suite, 0)
        counts[suite] += 1
        key = str(number + 1)
        rng = random.Random(f"imgedit {seed} {suite} {key}")
        if suite == "multi-turn":
            _add_dialogue(out, key, rng, files, references)
            continue
        names = tuple(IMGEDIT_KINDS) if suite == "basic" else UGE_KINDS
        name = names[count % len(names)]
        turn, base = make_edit(IMGEDIT_KINDS.get(name, name), rng)
        image = write_named_image(out, f"{suite}_{key}", base).removeprefix("images/")
        item = {"id": image, "prompt": turn.text}
        if suite == "basic":
            item["edit_type"] = name
        file = "Basic/basic_edit.json" if suite == "basic" else "UGE/UGE_edit.json"
        files.setdefault(file, {})[key] = item
        references[f"{suite}-{key}"] = {"turns": [{"kind": turn.kind, "args": turn.args}]}
    for file, items in files.items():
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_text(json.dumps(items, indent=1) + "\n", encoding="utf-8")
    write_sidecar(out, references)


def _add_dialogue(
    out: Path, key: str, rng: random.Random, files: dict[str, dict[str, Any]], references: dict[str, Any]
) -> None:
    """Add a dialogue in which each request is about the latest image."""
    task = rng.choice(tuple(DIALOGUE_KINDS))
    kinds = DIALOGUE_KINDS[task]
    while True:
        maker = DialogueMaker("", [start_scene(kinds, rng)], rng)
        if all(maker.try_turn(kind, number) for number, kind in enumerate(kinds, start=1)):
            break
    image = write_named_image(out, f"multi-turn_{key}", maker.inputs[0]).removeprefix("images/")
    item: dict[str, str] = {"id": image}
    turns: list[dict[str, Any]] = []
    for number, turn in enumerate(maker.turns, start=1):
        item[f"turn{number}"] = turn.text
        turns.append({"kind": turn.kind, "args": turn.args})
    files.setdefault(f"Multiturn/{task}/{task}.json", {})[key] = item
    references[f"multi-turn-{task}-{key}"] = {"turns": turns}


def make_edit(kind: str, rng: random.Random) -> tuple[TableTurn, Scene]:
    """Make a request of this kind, and the table that it is about. Something is left on the table afterwards."""
    while True:
        maker = DialogueMaker("", [start_scene([kind], rng)], rng)
        if not maker.try_turn(kind, 1):
            continue
        turn = maker.turns[-1]
        if turn.scene is not None and turn.scene.things():
            text = phrase_request(kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
            return replace(turn, text=text), maker.inputs[0]
