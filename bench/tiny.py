"""What the shipped tiny model can do, measured from the shipped weights: every operation and question, latency, memory.

    python bench/tiny.py [--samples 200] [--talker talker|single]

Each line is a request on true pictures, the whole dialogue before it in view; a picture is right if it shows exactly
the true scene, an answer if every word is right. Latency is one reply on one core, reading its pictures included."""

import argparse
import os
import random
import resource
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from msgspec import structs

from weft.benchmarks.weave import history
from weft.benchmarks.weave.protocol import WeaveOptions
from weft.types import Image
from weft_tabletop.exact import imug as points
from weft_tabletop.make import imug_points
from weft_tabletop.make.as_messages import build_sample, chat_messages, reference_replies
from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn
from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.requests import EVENTS
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.tiny.endpoint import SHIPPED
from weft_tabletop.tiny.infer import Tiny
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, phrase_request
from weft_tabletop.world.operations import EDITS, build_frames
from weft_tabletop.world.scenes import Scene, draw, read
from weft_tabletop.world.wordings import DOCUMENTS, HELPED, OPEN, QUESTIONS, SHOW, THINK

BEFORE = {  # what must have happened for a request to make sense
    "after": ["gravity"],
    "put back": ["remove", "recolour"],
    "restore": ["remove", "add"],
    "fulfils": ["add", "move"],
    "chosen": ["add", "move"],
    "changed": ["add", "move"],
}


def request(kind: str, number: int) -> DialogueMaker | None:
    chance = random.Random(f"{kind} {number}")
    maker = DialogueMaker(
        "", [start_scene([kind], chance) for _ in range(2 if kind in ("copy", "same") else 1)], chance
    )
    for earlier in BEFORE.get(kind, []):
        maker.try_turn(earlier)
    return maker if maker.try_turn(kind) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--talker", default="talker")
    parser.add_argument("--kind", action="append", help="only these kinds")
    chosen = parser.parse_args()
    tiny = Tiny(SHIPPED, chosen.talker)
    shares: dict[str, float] = {}
    times: dict[bool, list[float]] = {True: [], False: []}
    for kind in chosen.kind or [kind for kind in MAKERS if kind not in DOCUMENTS]:
        right = done = number = 0
        while done < chosen.samples and number < 20 * chosen.samples:
            number += 1
            maker = request(kind, number)
            if maker is None:
                continue
            done += 1
            ok, seconds = reply(tiny, maker)
            right += ok
            times[kind not in QUESTIONS].append(seconds)
        shares[kind] = right / done
    if chosen.kind:
        print(shares)
        return
    special(tiny, chosen.samples)
    print("| request | exactly right | | question | exactly right |\n| --- | ---: | --- | --- | ---: |")
    requests, questions = ([kind for kind in shares if (kind in QUESTIONS) == asked] for asked in (False, True))
    for at, kind in enumerate(requests):
        second = f"{questions[at]} | {shares[questions[at]]:.3f}" if at < len(questions) else " | "
        print(f"| {kind} | {shares[kind]:.3f} | | {second} |")
    edits = sum(shares[kind] for kind in EDITS) / len(EDITS)
    print(
        f"\n{chosen.samples} of each. Single edits ({', '.join(EDITS)}): {edits:.3f}. All: "
        f"{sum(shares.values()) / len(shares):.3f}."
    )
    for pictures, found in times.items():
        found.sort()
        name = "a picture" if pictures else "an answer"
        print(
            f"{name}: median {found[len(found) // 2] * 1000:.0f} ms, 95% under "
            f"{found[int(len(found) * 0.95)] * 1000:.0f} ms on one core"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def special(tiny: Tiny, samples: int) -> None:
    """With thinking before the picture, with a picture before the answer, with several pictures: all of the reply
    right."""
    forms = {
        "thinking first": (*EVENTS, "gravity", "mirror", "pattern"),
        "picture first": HELPED,
        "several pictures": DOCUMENTS,
    }
    for form, kinds in forms.items():
        said: list[str] = []
        for kind in kinds:
            right = done = number = 0
            while done < samples // 2:
                number += 1
                chance = random.Random(f"{form} {kind} {number}")
                maker = DialogueMaker("", [start_scene([kind], chance)], chance)
                if maker.try_turn(kind, 1):
                    done += 1
                    right += whole(tiny, form, maker)
            said.append(f"{kind} {right / done:.3f}")
        print(f"{form}: {', '.join(said)}")


def whole(tiny: Tiny, form: str, maker: DialogueMaker) -> bool:
    turn, base = maker.turns[-1], maker.inputs[0]
    text = phrase_request(turn.kind, turn.args, dict.fromkeys(turn.images, "the table"), maker.rng)
    due: list = (
        [part for pair in build_frames(turn.kind, turn.args, base) for part in pair]
        if form == "several pictures"
        else []
    )
    if form == "thinking first":
        text, due = f"{THINK} {text}", [f"<think> {describe_scene(turn.scene)} </think>", turn.scene]
    elif form == "picture first":
        text, due = (
            f"{SHOW} {text}",
            [
                answers.helper_scene(TableRequest(turn.kind, turn.args, {}), {"image": base}),
                f"Final Answer: {turn.answer}",
            ],
        )
    items = [
        vocab.USER,
        *([tiny.encode_image(draw(base))] if turn.images else []),
        *vocab.encode(text),
        vocab.ASSISTANT,
    ]
    parts = tiny.reply(items, one_image=form == "thinking first").parts
    made = [vocab.encode(part) if isinstance(part, str) else read(tiny.decode_image(part)).scene for part in parts]
    return made == [vocab.encode(part) if isinstance(part, str) else part for part in due]


def reply(tiny: Tiny, maker: DialogueMaker) -> tuple[bool, float]:
    scenes: dict[str, Scene] = {}

    def image_of(scene: Scene) -> Image:
        scenes[str(scene)] = scene
        return Image(str(scene), "image/png", 64, 64, 1)

    sample = build_sample(maker.build(), "s", image_of)
    last = sample.turns[-1]
    seen = history.build_messages(
        sample, last, reference_replies(sample, last.number), WeaveOptions("dialogue", "inline")
    )
    # these come up in IMUG-Bench's format alone: pictures with their turn, without numbers
    if maker.turns[-1].kind in OPEN:
        given = tuple(range(1, len(maker.inputs) + 1)) if maker.turns[-1].kind == "add any" else ()
        turns = (structs.replace(maker.turns[0], input_images=given), *maker.turns[1:])
        seen = chat_messages(TableDialogue("", maker.inputs, turns), image_of)[:-1]
    items = prompt.build_prompt(seen)
    drawn = {item.digest: draw(scenes[item.digest]) for item in items if isinstance(item, Image)}
    began = time.perf_counter()
    said = tiny.reply([tiny.encode_image(drawn[item.digest]) if isinstance(item, Image) else item for item in items])
    made = [part if isinstance(part, str) else tiny.decode_image(part) for part in said.parts]
    seconds = time.perf_counter() - began
    return is_right(made, maker.turns[-1], maker.scenes.get(maker.turns[-1].images.get("image", 0))), seconds


def is_right(made: list, turn: TableTurn, base: Scene | None) -> bool:
    if not made:
        return False
    if turn.kind in OPEN:  # right is whatever meets every point
        checks = {
            "kind": turn.kind,
            "args": imug_points.visible_args(turn),
            "points": imug_points.write_points(turn, random.Random(0))[1][:-1],
        }
        return not isinstance(made[0], str) and all(
            score == 5 for score, _ in points.score_points(checks, read(made[0]), base, None)
        )
    if turn.image_number is None:
        return isinstance(made[0], str) and vocab.encode(made[0]) == vocab.encode(turn.answer)
    return not isinstance(made[0], str) and read(made[0]).scene == turn.scene


if __name__ == "__main__":
    main()
