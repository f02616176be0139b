"""What it saves to draw pictures that do not need each other at the same time, and to begin before the plan is whole: a
planner that writes at a steady pace and a visualizer with a fixed latency, on real loopback sockets, through `weft
write`'s own path.

python bench/weaver.py [--pictures 6] [--draws 1.0] [--writes 2.0]"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from aiohttp import web

from server import Provider, Seen, data_url, drawn
from weft.evaluation.config import RunConfig
from weft.evaluation.session import complete_run, open_run
from weft.evaluation.writing import WritingRequest

from weft.results.run import Run  # isort: skip


def plan(pictures: int, uses: str) -> str:
    orders = [
        f"Step {at}, in a few words.\n<imagine{uses}>{'what is to be seen, ' * 20}{at}</imagine>\n"
        for at in range(1, pictures + 1)
    ]
    return "".join(orders)


async def measured(text: str, draws: float, writes: float, *, stream: bool) -> tuple[float, int]:
    """Seconds, and how many pictures were in flight at most."""

    async def planner(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
        if not stream or not seen.body.get("stream"):
            await asyncio.sleep(writes)
            return None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(
                b"data: " + json.dumps({"choices": [{"delta": {"content": piece}}]}).encode() + b"\n\n"
            )
            await asyncio.sleep(writes / len(pieces))
        await response.write(b"data: [DONE]\n\n")
        return response

    def say(seen: Seen) -> dict[str, Any]:
        return {"role": "assistant", "content": text}

    def draw(seen: Seen) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": "",
            "images": [{"image_url": {"url": data_url(drawn(seen.digest, 256))}}],
        }

    plans = await Provider(answer=say, fault=planner).start()
    paints = await Provider(answer=draw, latency=draws).start()
    with tempfile.TemporaryDirectory() as home:
        model = f"weaver:planner=openai-chat/p@{plans.url},visualizer=openai-chat/v@{paints.url}"
        began = time.perf_counter()
        run = await complete_run(open_run(RunConfig(model=model, home=home), WritingRequest("A guide.")), Run)
        took = time.perf_counter() - began
        assert len(run.turns[0].reply.images) == text.count("</imagine>")
    await plans.stop()
    await paints.stop()
    return took, paints.most_in_flight


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=6)
    parser.add_argument("--draws", type=float, default=1.0, help="seconds that a picture takes")
    parser.add_argument("--writes", type=float, default=2.0, help="seconds that the plan takes")
    chosen = parser.parse_args()
    count, draws, writes = chosen.pictures, chosen.draws, chosen.writes
    print(f"{count} pictures of {draws:g} s each, a plan of {writes:g} s")
    first = 0.0
    for name, uses, stream in (
        ("each uses all before it, plan at once", "", False),
        ("each uses the first, plan at once", ' uses="1"', False),
        ("none uses another, plan at once", ' uses="none"', False),
        ("none uses another, plan as a stream", ' uses="none"', True),
        ("each uses all before it, plan as a stream", "", True),
    ):
        took, most = await measured(plan(count, uses), draws, writes, stream=stream)
        first = first or took
        print(f"  {name:44} {took:6.2f} s   {first / took:5.2f} times as fast   {most} at most in flight")


if __name__ == "__main__":
    asyncio.run(main())
