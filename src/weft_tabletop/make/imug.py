"""Chats written in IMUG-Bench's official files: `benchmark.jsonl`, `images/`, both reference files, and the sidecar for
the exact judge."""

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.benchmarks.imug import Imug
from weft_tabletop.make.domains import IMUG, RequestKinds
from weft_tabletop.make.files import write_image, write_lines
from weft_tabletop.make.imug_dialogues import Chat, ChoiceTurn, make_chat
from weft_tabletop.make.imug_points import visible_args, write_points
from weft_tabletop.make.sidecar import write_sidecar

COUNTING = (
    "Pictures are counted in the order in which they come up in the dialogue, given or made: Image #1 is the first. "
    "The table is the most recent one."
)


def imug_dialogues(samples: int, seed: int, mixes: Mapping[tuple[str, str], RequestKinds] = IMUG) -> list[Chat]:
    """Make chats of 2 to 6 turns, the domains in turn."""
    keys = list(mixes)
    chats: list[Chat] = []
    attempt = 0
    while len(chats) < samples:
        number = len(chats)
        domain, task = keys[number % len(keys)]
        turns = 2 + (number // len(keys) + number) % 5
        rng = random.Random(f"imug {seed} {attempt} {domain}")
        chat = make_chat(domain, task, mixes[domain, task], turns, rng)
        attempt += 1
        if chat is not None:
            chats.append(chat)
    return chats


def write_imug(out: Path, chats: list[Chat]) -> None:
    """Write the official files, the images and the sidecar."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    system = f"{Imug.preparation.rubrics(Imug(), 'weft').texts['system'].strip()}\n\n{COUNTING}"
    benchmark: list[dict[str, Any]] = []
    image_references: list[dict[str, Any]] = []
    dynamic_references: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for chat in chats:
        counts[chat.domain, chat.task] += 1
        number = str(counts[chat.domain, chat.task])
        key = {"sample_id": number, "domain": chat.domain, "subdomain": chat.task}
        writer = _ChatWriter(chat, key, out / "images")
        benchmark.append({**key, "system_prompt": system, "tasks": writer.tasks})
        if writer.links:
            image_references.append({**key, "reference_links": writer.links})
        dynamic_references += writer.dynamic
        references[f"{chat.domain}/{chat.task}/{number}"] = {"turns": writer.references}
    write_lines(out / "benchmark.jsonl", benchmark)
    write_lines(out / "image_references.jsonl", image_references)
    write_lines(out / "dynamic_references.jsonl", dynamic_references)
    write_sidecar(out, references)


class _ChatWriter:
    """One chat as its records.

    An image's origin is the turn (from 1) that gave or made it, and its index among that turn's images.
    """

    def __init__(self, chat: Chat, key: Mapping[str, str], images: Path) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []
        self.dynamic: list[dict[str, Any]] = []
        self.references: list[dict[str, Any]] = []
        self._chat = chat
        self._key = key
        self._images = images
        self._origins: dict[int, dict[str, Any]] = {}
        self._rng = random.Random(f"points {'/'.join(key.values())}")
        for number in range(1, len(chat.dialogue.turns) + 1):
            self._write_turn(number)

    def _write_turn(self, number: int) -> None:
        parts = self._write_input(number)
        choice_turn = self._chat.choices.get(number - 1)
        if choice_turn is None:
            self._write_request(number, parts)
        else:
            self._write_question(number, parts, choice_turn)

    def _write_input(self, number: int) -> list[dict[str, str]]:
        """The text of a turn and the images that come with it, which are written to files."""
        dialogue = self._chat.dialogue
        turn = dialogue.turns[number - 1]
        sample = f"{self._key['domain']}__{self._key['subdomain']}__{self._key['sample_id']}"
        parts: list[dict[str, str]] = [{"text": turn.text}]
        for index, image_number in enumerate(turn.input_images):
            name = f"{sample}__img_{image_number}.png"
            write_image(self._images / name, dialogue.inputs[image_number - 1])
            parts.append({"image": name})
            self._origins[image_number] = {"turn": number, "kind": "input", "at": index}
        return parts

    def _write_question(self, number: int, parts: list[dict[str, str]], question: ChoiceTurn) -> None:
        answer = "<DYNAMIC>" if question.dynamic else question.letters
        self.tasks.append({"turn": number, "modality": "text", "input": parts, "output": {"answer": answer}})
        request = question.choice.request
        options = question.choice.options
        self.references.append({"kind": "choice", "asks": request.kind, "args": request.args, "options": options})
        if question.dynamic:
            origin = self._origins[question.image_number]
            self.dynamic.append({**self._key, "turn_idx": number, "ref_turn_idxs": [origin["turn"]]})

    def _write_request(self, number: int, parts: list[dict[str, str]]) -> None:
        turn = self._chat.dialogue.turns[number - 1]
        points, checks = write_points(turn, self._rng)
        output = {"evaluation_points": points}
        self.tasks.append({"turn": number, "modality": "image", "input": parts, "output": output})
        origins = {slot: self._origins[image_number] for slot, image_number in turn.images.items()}
        args = visible_args(turn)
        self.references.append({"kind": turn.kind, "args": args, "points": checks, "origins": origins})
        links: dict[tuple[int, str], dict[str, Any]] = {}  # each origin once
        for origin in origins.values():
            links[origin["turn"], origin["kind"]] = {"ref_turn": origin["turn"], "ref_type": origin["kind"]}
        if links:
            self.links.append({"turn_idx": number, "refs": list(links.values())})
        if turn.image_number is not None:
            self._origins[turn.image_number] = {"turn": number, "kind": "output", "at": 0}
