"""Chats written in IMUG-Bench's official files: `benchmark.jsonl`, `images/`, both reference files, and the sidecar for
the exact judge."""

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.benchmarks.imug import Imug
from weft.store.images import encode_png
from weft_tabletop.make.domains import IMUG, Mix
from weft_tabletop.make.imug_dialogues import Chat, make_chat
from weft_tabletop.make.imug_points import visible_args, write_points
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world.scenes import draw

COUNTING = (
    "Pictures are counted in the order in which they come up in the dialogue, given or made: Image #1 is the first. "
    "The table is the most recent one."
)


def imug_dialogues(samples: int, seed: int, mixes: Mapping[tuple[str, str], Mix] = IMUG) -> list[Chat]:
    """Domains in turn, 2 to 6 turns each."""
    keys = list(mixes)
    made: list[Chat] = []
    number = 0
    while len(made) < samples:
        domain, task = keys[len(made) % len(keys)]
        turns = 2 + (len(made) // len(keys) + len(made)) % 5
        chat = make_chat(domain, task, mixes[domain, task], turns, random.Random(f"imug {seed} {number} {domain}"))
        number += 1
        if chat is not None:
            made.append(chat)
    return made


def write_imug(out: Path, made: list[Chat]) -> None:
    (out / "images").mkdir(parents=True, exist_ok=True)
    system = f"{Imug.preparation.rubrics(Imug(), 'weft').texts['system'].strip()}\n\n{COUNTING}"
    lines: dict[str, list[dict[str, Any]]] = {"benchmark": [], "image_references": [], "dynamic_references": []}
    truth: dict[str, Any] = {}
    count: Counter[tuple[str, str]] = Counter()
    for chat in made:
        count[chat.domain, chat.task] += 1
        key = {"sample_id": str(count[chat.domain, chat.task]), "domain": chat.domain, "subdomain": chat.task}
        writer = _Writer(chat, key, out / "images")
        lines["benchmark"].append({**key, "system_prompt": system, "tasks": writer.tasks})
        if writer.links:
            lines["image_references"].append({**key, "reference_links": writer.links})
        lines["dynamic_references"] += writer.dynamic
        truth["/".join((chat.domain, chat.task, key["sample_id"]))] = {"turns": writer.truth}
    for name, records in lines.items():
        (out / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    write_sidecar(out, truth)


class _Writer:
    """One chat as its records. A picture's origin is the turn (1-based) that gave or made it, and its place among that
    turn's pictures."""

    def __init__(self, chat: Chat, key: Mapping[str, str], images: Path) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []
        self.dynamic: list[dict[str, Any]] = []
        self.truth: list[dict[str, Any]] = []
        self._chat = chat
        self._key = key
        self._images = images
        self._origins: dict[int, dict[str, Any]] = {}
        self._chance = random.Random(f"points {'/'.join(key.values())}")
        for number in range(1, len(chat.dialogue.turns) + 1):
            self._turn(number)

    def _turn(self, number: int) -> None:
        turn = self._chat.dialogue.turns[number - 1]
        given: list[dict[str, str]] = [{"text": turn.text}]
        for at, picture in enumerate(turn.input_images):
            name = f"{self._key['domain']}__{self._key['subdomain']}__{self._key['sample_id']}__img_{picture}.png"
            (self._images / name).write_bytes(encode_png(draw(self._chat.dialogue.inputs[picture - 1])))
            given.append({"image": name})
            self._origins[picture] = {"turn": number, "kind": "input", "at": at}
        asking = self._chat.choices.get(number - 1)
        if asking is not None:
            if asking.dynamic:
                answer = "<DYNAMIC>"
            else:
                answer = asking.letters
            self.tasks.append({"turn": number, "modality": "text", "input": given, "output": {"answer": answer}})
            asked = asking.choice.request
            self.truth.append(
                {"kind": "choice", "asks": asked.kind, "args": asked.args, "options": asking.choice.options}
            )
            if asking.dynamic:
                looks_at = [self._origins[asking.picture]["turn"]]
                self.dynamic.append({**self._key, "turn_idx": number, "ref_turn_idxs": looks_at})
            return
        points, checks = write_points(turn, self._chance)
        self.tasks.append(
            {"turn": number, "modality": "image", "input": given, "output": {"evaluation_points": points}}
        )
        origins = {slot: self._origins[picture] for slot, picture in turn.images.items()}
        self.truth.append({"kind": turn.kind, "args": visible_args(turn), "points": checks, "origins": origins})
        refs = {
            (origin["turn"], origin["kind"]): {"ref_turn": origin["turn"], "ref_type": origin["kind"]}
            for origin in origins.values()
        }
        if refs:
            self.links.append({"turn_idx": number, "refs": list(refs.values())})
        if turn.image_number is not None:
            self._origins[turn.image_number] = {"turn": number, "kind": "output", "at": 0}
