"""A folder to fill with prompts of one's own: one example of each kind, with a picture, and a page that says how."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.store.images import encode_png

if TYPE_CHECKING:
    from PIL import Image as Pil

HOW = """# Prompts for WeaverBench, to fill in

`weaverbench.jsonl` has one prompt a line. Change the examples, copy them, or delete them.

| field | what | when |
| --- | --- | --- |
| `id` | a short name of its own, without slashes | always, best |
| `category` | one of the fifteen below, or one of your own | always |
| `input` | what the model is asked: a list of `{"text": ...}` and `{"image": "images/NAME.png"}` in the order they are shown | always |
| `required_images` | how many pictures it must have; `null`: one at least; `1`: a single picture; `0`: a question | as the prompt says |
| `length` | `short`, `medium` or `long` | if you like; else by its words: up to 40, up to 110, more |
| `output` | a reference document, in the same form as `input`; shown beside the model's, never to the judge | if you have one |

Categories: Encyclopedic Knowledge, News Media, Travel Guide, Daily Life, Food Cooking, Education Tutorial, Art Creation, Fashion Beauty,
Media Entertainment, Product Marketing, Academic Research, Document Guides, Social Community, Reasoning, Multi-language.

What is scored, from 0 to 10, by one call to a judge: Prompt Adherence (PA), Narrative Coordination (NC), Content Consistency (CC, three
scores), Image Consistency (IC, two), Completeness (CP); Overall is the mean of the five. Acc counts pictures, and needs no judge.

A number of pictures in the prompt and in `required_images` must be the same: nobody reads the prompt for you.

Then, in the folder above this one (this folder is called FOLDER here):

    weft data check weaverbench FOLDER                                      what is wrong, with record and field
    weft run weaverbench --data FOLDER --model MODEL --judge JUDGE          `weft models` lists what may stand for MODEL and JUDGE
    weft run weaverbench --data FOLDER --model weaver:planner=MODEL,visualizer=MODEL --judge JUDGE      one model plans, another draws
    weft report last --open                                                 tables, every document, every score with its reason
    weft score RESULTS --benchmark weaverbench --data FOLDER --judge JUDGE  documents made elsewhere: RESULTS/ID.json, which is
                                                                            {"output": [{"text": ...}, {"image": "ID-o-0.png"}]}

A try that costs nothing is `--model copy --judge constant/max`: a model that returns the picture it is given, and a judge that gives full
marks to all; Acc is right where one picture was asked for.
"""


def build_prompts() -> list[dict[str, Any]]:
    return [
        {
            "id": "repot-a-plant",
            "category": "Daily Life",
            "input": [
                {
                    "text": "Write an illustrated guide to repotting this plant in exactly 3 steps, with one picture for each step."
                },
                {"image": "images/plant.png"},
            ],
            "required_images": 3,
        },
        {
            "id": "night-train",
            "category": "Travel Guide",
            "input": [
                {"text": "Write a short illustrated article about taking the night train from Vienna to Venice."}
            ],
            "required_images": None,
        },
        {
            "id": "plant-poster",
            "category": "Art Creation",
            "input": [
                {"image": "images/plant.png"},
                {"text": "Make one poster of this plant in the style of a woodcut."},
            ],
            "required_images": 1,
        },
        {
            "id": "how-many-leaves",
            "category": "Reasoning",
            "input": [
                {"image": "images/plant.png"},
                {"text": "How many leaves does this plant have? Answer in a sentence."},
            ],
            "required_images": 0,
        },
    ]


def draw_plant() -> "Pil.Image":
    from PIL import Image as Pil
    from PIL import ImageDraw

    picture = Pil.new("RGB", (480, 480), "#f4efe6")
    draw = ImageDraw.Draw(picture)
    draw.polygon([(170, 330), (310, 330), (290, 440), (190, 440)], fill="#b5613c")
    draw.rectangle((160, 310, 320, 336), fill="#c9744c")
    draw.line((240, 312, 240, 130), fill="#3f7d46", width=9)
    for left, top, side in ((240, 130, 1), (240, 180, -1), (240, 230, 1), (240, 265, -1), (240, 95, 0)):
        if side > 0:
            across = (left, left + 95)
        else:
            if side < 0:
                across = (left - 95, left)
            else:
                across = (left - 30, left + 30)
        draw.ellipse((across[0], top, across[1], top + 44), fill="#4f9a57", outline="#2f6b38", width=3)
    return picture


def write_template(folder: Path) -> None:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / "plant.png").write_bytes(encode_png(draw_plant()))
    lines = [json.dumps(prompt, ensure_ascii=False) for prompt in build_prompts()]
    (folder / "weaverbench.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(HOW, encoding="utf-8")
