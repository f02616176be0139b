"""evalscope asks a served model: the questions, the server, the tool, and what went between them, as a record."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from weft_tabletop.make import make

EVALSCOPE = os.environ.get("WEFT_EVALSCOPE") or shutil.which("evalscope")
RECORD = Path(__file__).parent / "serving" / "recorded" / "evalscope.json"
IS_RECORDING = bool(os.environ.get("WEFT_RECORD"))
TASK = "general_vmcq"  # questions with images in MMMU's form, from files of the user's own
SETTINGS = ("temperature", "max_tokens", "top_p")  # that the tool sends, and the model cannot take
FOLDERS = ("configs", "predictions", "reports", "reviews")  # of a run, as far as they are read
PATH = "/v1/chat/completions"
# the tool's own sentences, which are not kept: what it asks for, and what it says of its task
PROMPT = re.compile(r"Answer the following multiple choice question\..*?by step before answering\.", re.DOTALL)
ABOUT = re.compile(r'("dataset_description": )"(?:[^"\\]|\\.)*"')
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def write_questions(folder: Path, count: int) -> Path:
    """Write questions about tables, the right answer first among four."""
    questions = make("tabletop-mmvet", folder / "questions", samples=3 * count, seed=0)
    records = json.loads((questions / "mm-vet.json").read_text())
    rows: list[str] = []
    for record in records.values():
        if "<AND>" in record["answer"]:
            continue
        image = str(questions / "images" / record["imagename"])
        options = [record["answer"], "a red star", "7", "purple"]
        row = {"question": f"<image 1> {record['question']}", "options": options, "image_1": image, "answer": "A"}
        rows.append(json.dumps(row))
    data = folder / "data"
    data.mkdir()
    (data / "default_val.jsonl").write_text("\n".join(rows[:count]) + "\n")
    return data


@contextlib.contextmanager
def served(folder: Path) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a server of tabletop/tiny, and its process, which leads a group of its own."""
    ignored = [word for setting in SETTINGS for word in ("--ignore", setting)]
    words = [sys.executable, "-m", "weft", "serve", "tabletop/tiny", "--port", "0", *ignored]
    words += ["--home", str(folder / "serving")]
    process = subprocess.Popen(
        words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            found = re.search(rf"(http://[\d.:]+){PATH}", line)
            if found:
                yield found[1], process
                return
        raise AssertionError(said)
    finally:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """End a process and those that it began, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def ask(url: str, data: Path, folder: Path) -> "subprocess.Popen[str]":
    """Let evalscope ask the server all questions."""
    assert EVALSCOPE is not None
    options = json.dumps({TASK: {"local_path": str(data), "subset_list": ["default"]}})
    words = ["eval", "--eval-type", "openai_api", "--api-url", f"{url}/v1", "--api-key", "K", "--model", "tiny"]
    words += ["--datasets", TASK, "--dataset-args", options, "--work-dir", str(folder)]
    log = (folder.parent / "evalscope.log").open("w")
    return subprocess.Popen([EVALSCOPE, *words], stdout=log, stderr=subprocess.STDOUT, text=True, cwd=folder.parent)


def count_replies(folder: Path) -> int:
    return sum(path.read_text().count("\n") for path in folder.glob("*/predictions/tiny/*.jsonl"))


@contextlib.contextmanager
def listening(url: str) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server that passes requests on, and what went through it: `request` and `reply`."""
    exchanges: list[dict[str, Any]] = []

    async def forward(request: web.Request) -> web.Response:
        body = without_words((await request.read()).decode())
        async with aiohttp.ClientSession() as session, session.post(url + request.path, json=json.loads(body)) as came:
            reply = await came.read()
            exchanges.append({"request": json.loads(body), "reply": json.loads(reply)})
            return web.Response(body=reply, status=came.status, content_type="application/json")

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/{rest:.*}", forward)
    runner = web.AppRunner(app, access_log=None)
    try:
        asyncio.run_coroutine_threadsafe(_start(runner), loop).result()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", exchanges
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(runner: web.AppRunner) -> None:
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()


def keep(name: str, work: Path, run: Path, exchanges: Sequence[dict[str, Any]] = ()) -> None:
    """Put a run into the record: its files, without where they lay and the tool's own sentences, and what went to the
    server and back."""
    files: dict[str, str] = {}
    for path in sorted(path for folder in FOLDERS for path in (run / folder).glob("**/*")):
        if path.is_file() and path.suffix != ".html":
            text = path.read_text().replace(str(work), "FOLDER").replace(str(Path.home()), "HOME")
            files[path.relative_to(run).as_posix()] = ADDRESS.sub("http://127.0.0.1:0", without_words(text))
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    record[name] = {"run": run.name, "files": files, "exchanges": list(exchanges)}
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def without_words(text: str) -> str:
    """Return what was sent or written without the tool's own sentences."""
    return ABOUT.sub(r'\1""', PROMPT.sub("Choose.", text))


def read_record(name: str) -> dict[str, Any]:
    return json.loads(RECORD.read_text())[name]


def unpack(name: str, folder: Path) -> Path:
    """Write the files of a recorded run, and return its folder."""
    record = read_record(name)
    run = folder / record["run"]
    for path, text in record["files"].items():
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_text(text)
    return run
