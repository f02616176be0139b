"""A folder to fill with own prompts: one example of each kind, with an image, and a README that says how."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.store.images import encode_png

if TYPE_CHECKING:
    from PIL import Image as Pil

README = """# Prompts for WeaverBench, to fill in

`weaverbench.jsonl` has one prompt a line. Change the examples, copy them, or delete them.

| field | what | when |
| --- | --- | --- |
| `id` | a short name of its own, without slashes | recommended |
| `category` | one of the fifteen below, or your own | always |
| `input` | the prompt: a list of `{"text": ...}` and `{"image": "images/NAME.png"}` in their order | always |
| `required_images` | how many images: `null`: at least one; `1`: a single image; `0`: a question | as the prompt says |
| `length` | `short`, `medium` or `long` | optional; else by its words: up to 40, up to 110, more |
| `output` | a reference document, in the same form as `input`; shown in the report, never to the judge | optional |

Categories: Encyclopedic Knowledge, News Media, Travel Guide, Daily Life, Food Cooking, Education Tutorial,
Art Creation, Fashion Beauty, Media Entertainment, Product Marketing, Academic Research, Document Guides,
Social Community, Reasoning, Multi-language.

One call to a judge gives these scores, from 0 to 10: Prompt Adherence (PA), Narrative Coordination (NC),
Content Consistency (CC, three scores), Image Consistency (IC, two), Completeness (CP). Overall is the mean of the
five. Acc counts images, and needs no judge.

The number of images in the prompt and in `required_images` must be the same: the prompt is not parsed for it.

Then, in the folder above this one (this folder is called FOLDER here):

    # report what is wrong, with record and field
    weft data check weaverbench FOLDER

    # `weft models` lists what MODEL and JUDGE may be
    weft run weaverbench --data FOLDER --model MODEL --judge JUDGE

    # one model plans, another draws
    weft run weaverbench --data FOLDER --model weaver:planner=MODEL,visualizer=MODEL --judge JUDGE

    # tables, every document, every score with its reason
    weft report last --open

    # documents made elsewhere: RESULTS/ID.json is {"output": [{"text": ...}, {"image": "ID-o-0.png"}]}
    weft score RESULTS --benchmark weaverbench --data FOLDER --judge JUDGE

`--model copy --judge constant/max` tries it out for free: a model that returns the image it is given, and a judge
that gives full marks; Acc is right where one image was asked for.
"""


def build_prompts() -> list[dict[str, Any]]:
    return [
        {
            "id": "repot-a-plant",
            "category": "Daily Life",
            "input": [
                {
                    "text": "Write an illustrated guide to repotting this plant in exactly 3 steps, "
                    "with one picture for each step."
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

    image = Pil.new("RGB", (480, 480), "#f4efe6")
    draw = ImageDraw.Draw(image)
    draw.polygon([(170, 330), (310, 330), (290, 440), (190, 440)], fill="#b5613c")
    draw.rectangle((160, 310, 320, 336), fill="#c9744c")
    draw.line((240, 312, 240, 130), fill="#3f7d46", width=9)
    for left, top, right in ((240, 130, 335), (145, 180, 240), (240, 230, 335), (145, 265, 240), (210, 95, 270)):
        draw.ellipse((left, top, right, top + 44), fill="#4f9a57", outline="#2f6b38", width=3)
    return image


def write_template(folder: Path) -> None:
    """Write the example prompts, their image and the README into a folder."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / "plant.png").write_bytes(encode_png(draw_plant()))
    lines = [json.dumps(prompt, ensure_ascii=False) for prompt in build_prompts()]
    (folder / "weaverbench.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(README, encoding="utf-8")
