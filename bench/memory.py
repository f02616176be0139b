"""What hostile amounts cost: the most memory that a process takes for eight huge pictures, ten huge replies, and very
many records.

Prints megabytes beside the goals. Each figure is of a process of its own, base and interpreter included (about 60 MB).

    python bench/memory.py [pictures] [replies] [records]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))
GOALS = {"pictures": 1000, "replies": 500, "records": 300}
SIDE, REPLY = 9999, 100_000_000


def peak(code: str, folder: Path) -> tuple[float, float]:
    """Megabytes at the most, and seconds, of a Python process."""
    # the kernel hands ru_maxrss on to a child process; VmHWM is the process's own
    told = (
        "\nprint(next(int(line.split()[1]) / 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code + told], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1]), time.perf_counter() - began


def record(number: int, pictures: list[str]) -> dict:
    said = [
        {
            "role": "user",
            "type": "text",
            "content": f"Look at Image #1 and Image #{len(pictures) - 1}. Make one like them, number {number}.",
        }
    ]
    made = f"Image #{len(pictures)}"
    said.append(
        {
            "role": "assistant",
            "type": "image",
            "content": made,
            "key_point": {"GT #1": "As in <image>.", "Text": "It is there."},
        }
    )
    said += [
        {"role": "user", "type": "text", "content": f"And how many things does {made} have?"},
        {"role": "assistant", "type": "text", "content": f"{number} things, as far as one can see."},
    ]
    return {"idx": number, "domain": "recall", "images": pictures, "chats": said}


def pictures(folder: Path) -> dict[str, tuple[float, float]]:
    """Eight pictures of 9,999 pixels, both ways, with transparency: read, shown in every shape, judged, reported."""
    from PIL import Image

    (folder / "data" / "imgs").mkdir(parents=True)
    names = [f"imgs/{at}.png" for at in range(8)]
    for at, name in enumerate(names):
        Image.new("RGBA", (SIDE, SIDE - at), (at * 30, 90, 200, 255)).save(folder / "data" / name, compress_level=1)
    (folder / "data" / "test.json").write_text(json.dumps([record(0, names)]))
    shown = "[part for _, parts in messages for part in parts if not isinstance(part, str)]"
    model = f"def model(messages, want):\n    return {shown}[0] if want == 'image' else 'x'\n"
    (folder / "mine.py").write_text("version = '1'\n" + model)
    run = "import weft\nrun = weft.evaluate('weave', data='data', judge='constant/5', home='home', history='full', {})"
    made: dict[str, tuple[float, float]] = {}
    for name, chosen in {
        "as they are": "model='copy'",
        "made smaller": "model='mine.py:model', model_options={'max_side': 512}",
        "as a strip": "model='mine.py:model', model_options={'images': 'strip'}",
        "to a function": "model='mine.py:model'",
    }.items():
        made[name] = peak(run.format(chosen), folder)
    report = "import weft\nfrom weft import api\nfrom weft.store.journal import Journal\nfrom pathlib import Path\n"
    report += "run = api.load_run(Journal(Path('home/journal.sqlite'), readonly=True), 'last')\napi.write_report([run], 'report', home='home')"
    made["in a report"] = peak(report, folder)
    return made


SERVER = """
import asyncio, base64, json, sys
from aiohttp import web
whole = json.dumps({"choices": [{"message": {"role": "assistant", "content": "PICTURE"}, "finish_reason": "stop"}]}).encode()
async def answer(request):
    body = await request.read()
    text = b"data:image/png;base64," + b"A" * SIZE if b"modalities" in body else b"x" * SIZE
    return web.Response(body=whole.replace(b"PICTURE", text), content_type="application/json")
async def main():
    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app); await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0); await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def replies(folder: Path) -> dict[str, tuple[float, float]]:
    """Ten replies of 100 MB at once: words where words are due, and a picture where pictures are."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER.replace("SIZE", str(REPLY))], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    code = f"""
import asyncio
from pathlib import Path
from weft.calls.budget import Budget
from weft.calls.caller import Caller, RetryPolicy
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Message, Text, Request
async def main():
    blobs = Blobs(Path("b"))
    endpoint, journal = resolve_endpoint("openai-chat/m@{url}", blobs), Journal(Path("j/KIND.sqlite"))
    patience = RetryPolicy(tries=1, empty_tries=1)
    caller = Caller(endpoint, role="model", journal=journal, budget=Budget(), concurrency=10, retry_policy=patience)
    made = await asyncio.gather(*(caller.reply((Message("user", (Text(str(n)),)),), Request("KIND")) for n in range(10)))
    print({{one.outcome for one in made}}, made[0].reason[:100])
asyncio.run(main())
"""
    try:
        return {kind: peak(code.replace("KIND", kind), folder) for kind in ("text", "image")}
    finally:
        server.kill()


def records(folder: Path, count: int = 100_000) -> dict[str, tuple[float, float]]:
    """A hundred thousand records: only read, and a whole run with its tables."""
    from server import drawn

    (folder / "data" / "imgs").mkdir(parents=True)
    for at in range(3):
        (folder / "data" / "imgs" / f"{at}.png").write_bytes(drawn(str(at)))
    names = [f"imgs/{at}.png" for at in range(3)]
    (folder / "data" / "test.json").write_text(json.dumps([record(number, names) for number in range(count)]))
    load = "from pathlib import Path\nfrom weft.store.blobs import Blobs\nfrom weft.benchmarks.weave.data import load\n"
    load += "assert sum(1 for _ in load(Path('data'), Blobs(Path('b'))).samples) > 1000"
    run = "import weft\nrun = weft.evaluate('weave', data='data', model='copy', judge='constant/5', home='home')\nrun.table()"
    return {"read": peak(load, folder), "a whole run": peak(run, folder)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=", ".join(GOALS))
    chosen = parser.parse_args().what or list(GOALS)
    for what in chosen:
        with tempfile.TemporaryDirectory(prefix="weft-memory-") as folder:
            for name, (megabytes, seconds) in globals()[what](Path(folder)).items():
                goal = GOALS[what]
                print(
                    f"{what}, {name}: {megabytes:.0f} MB, {seconds:.0f} s (goal {goal} "
                    f"MB{'' if megabytes <= goal else ', MISSED'})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
