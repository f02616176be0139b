"""What a dry run says a build will cost beside what servers then bill, for three pathways.

    python bench/build_costs.py OUT [--trial 60] [--seeds 400]

Loopback servers stand in for the papers' models at their prices: a writer and a checker by the token, image models by
the image. They keep a bill of their own. A dry run before the first call has a range, from "every image is right at
once" to "every one is mended": its lower end is compared with the bill of servers that do everything right. Then they
refuse 2% of requests, answer badly in 5% of texts and return the input in 15% of edits: a dry run after a trial of some
seeds, which goes by what these cost, is compared with the bill of the seeds that follow.
"""

import argparse
import asyncio
import io
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from aiohttp import web
from msgspec.structs import replace
from PIL import Image as Pil

from building.papers_models import PapersModels, read_message
from building.test_pathways import request
from weft.building.build import forecast_build, run_build
from weft.building.request import BuildRequest

PRICES = {  # USD: of a million tokens in and out, and of an image
    "writer": (2.0, 8.0, 0.0),
    "checker": (2.0, 8.0, 0.0),
    "painter": (0.0, 0.0, 0.03),
    "editor": (0.0, 0.0, 0.039),
}
PATHWAYS = ("weave-fusion", "weave-recall", "weave-sequence")


class BilledModels(PapersModels):
    """The papers' models with a bill. Tokens are counted here, and reported as providers do."""

    def __init__(self, *, is_right: bool) -> None:
        faults = {} if is_right else {"writes_badly": 0.05, "returns_input": 0.15, "refuses": 0.02}
        super().__init__(**faults)
        self.bill = 0.0

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        response = await super()._answer(request)
        if response.status != 200:
            return response
        answer = json.loads(str(response.text))
        content = answer["choices"][0]["message"]
        tokens_in = sum(count_tokens(message) for message in body["messages"])
        tokens_out = math.ceil(len(content.get("content") or content.get("refusal") or "") / 4)
        images = len(content.get("images", ()))
        answer["usage"] = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
        per_in, per_out, per_image = PRICES[body["model"]]
        self.bill += (tokens_in * per_in + tokens_out * per_out) / 1e6 + images * per_image
        return web.json_response(answer)


def count_tokens(message: Any) -> int:
    text, images = read_message(message)
    tokens = math.ceil(len(text) / 4)
    for image in images:
        width, height = Pil.open(io.BytesIO(image)).size
        tokens += 85 + 170 * math.ceil(width / 512) * math.ceil(height / 512)
    return tokens


async def compare_right(recipe: str, out: Path, seeds: int) -> None:
    """Compare the bill of servers without faults with the dry run before the first call."""
    models = BilledModels(is_right=True)
    async with models.up():
        asked = request(recipe, out, models, seeds)
        forecast = await forecast_build(asked)
        await finish(asked)
    low, high = (sum(one.cost[bound] for one in forecast.roles.values() if one.cost) for bound in (0, 1))
    print(
        f"{recipe:<16}{seeds:>5} seeds without faults, billed ${models.bill:.3f}; before any call: ${low:.3f} "
        f"({low / models.bill - 1:+.1%}) to ${high:.3f}",
        flush=True,
    )


async def compare(recipe: str, out: Path, trial: int, seeds: int) -> None:
    """Compare the bill of servers with faults with the dry run after a trial."""
    models = BilledModels(is_right=False)
    async with models.up():
        asked: BuildRequest = request(recipe, out, models, seeds)
        await finish(replace(asked, seeds=trial))
        spent = models.bill
        measured = (await forecast_build(asked)).measured
        await finish(asked)
    bill = models.bill - spent
    assert measured is not None
    print(
        f"{recipe:<16}{measured.left:>5} seeds with faults, billed ${bill:.3f}; after {measured.seeds} seeds, of which "
        f"{measured.kept} were kept: ${measured.rest:.3f} ± {measured.margin:.3f} ({measured.rest / bill - 1:+.1%})",
        flush=True,
    )


async def finish(asked: BuildRequest) -> None:
    outcome = await run_build(asked)
    if outcome.reason is not None:
        raise SystemExit(f"stopped: {outcome.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--trial", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=400)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    os.chdir(asked.out)
    lines = [
        f'[prices."{role}"]\nin = {per_in}\nout = {per_out}\nimage = {per_image}\n'
        for role, (per_in, per_out, per_image) in PRICES.items()
    ]
    Path("weft.toml").write_text("".join(lines))
    for recipe in PATHWAYS:
        asyncio.run(compare_right(recipe, Path.cwd() / f"{recipe}-right", asked.trial))
        asyncio.run(compare(recipe, Path.cwd() / recipe, asked.trial, asked.seeds))


if __name__ == "__main__":
    main()
