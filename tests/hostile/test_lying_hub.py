"""A hub that lies, over HTTP on loopback: names that lead out, answers of another kind, files that are cut."""

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from waiting import HANGS

pytest.importorskip("huggingface_hub")
KEY = "hf_canary_0123456789abcdef"
COMMIT = "0" * 40
GO = """
import sys
from pathlib import Path
from weft.benchmarks.download import download_dataset
from weft.errors import UserError
for name in sys.argv[1:]:
    try:
        download_dataset(f"me/{name}", Path("deep") / "folder" / name)
        print(name, "came", flush=True)
    except UserError as error:
        assert "\\n" not in str(error), error
        print(name, error, flush=True)
"""


def archive(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr(name, "x")
    return out.getvalue()


FILES: dict[str, dict[str, bytes]] = {
    "sound": {"test.json": b"[]"},
    "up": {"../../escaped.txt": b"x"},
    "absolute": {f"{Path.cwd()}/escaped.txt": b"x"},
    "backslashes": {"a\\..\\..\\escaped.txt": b"x"},
    "archive": {"a.zip": archive("../../escaped.txt")},
    "control": {"a\0b.json": b"[]"},
}
ANSWERS = {"html": b"<html>\x1b[31m</html>", "deep": b"[" * 200_000, "nothing": b""}
ODD = ("redirect", "cut", "endless", "etag")


class Hub(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = unquote(self.path.partition("?")[0])
        case = path.split("/me/")[1].split("/")[0]
        files = FILES.get(case, FILES["sound"])
        name = path.partition("/resolve/")[2].partition("/")[2]
        if case in ANSWERS:
            data = ANSWERS[case]
        elif "/tree/" in path:
            data = json.dumps([{"type": "file", "path": one, "size": 2, "oid": "1" * 40} for one in files]).encode()
        elif path.startswith("/api/"):
            data = json.dumps({"id": case, "sha": COMMIT, "siblings": [{"rfilename": one} for one in files]}).encode()
        else:
            data = files.get(name, b"")
        is_file = "/resolve/" in path
        is_elsewhere = is_file and case == "redirect"
        self.send_response(302 if is_elsewhere else 200)
        if is_elsewhere:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"../../../../escaped"' if case == "etag" else f'"{"1" * 40}"')
        more = {"cut": 100, "endless": 10**15}.get(case, 0) if is_file else 0
        self.send_header("Content-Length", str(len(data) + more))
        self.end_headers()
        if body:
            self.wfile.write(data)
        if more:
            self.close_connection = True


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_what_a_hub_says_is_one_line_and_leads_nowhere_else(hub: str, tmp_path: Path):
    work = tmp_path / "a" / "b"
    work.mkdir(parents=True)
    names = [*FILES, *ANSWERS, *ODD]
    environment = {**os.environ, "HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": KEY}
    environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "2", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", GO, *names], cwd=work, env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = {line.partition(" ")[0]: line.partition(" ")[2] for line in done.stdout.splitlines()}
    assert list(told) == names and told["sound"] == "came"
    refused = {name for name, words in told.items() if words != "came"}
    assert {"up", "absolute", "backslashes", "archive", "control", *ANSWERS, "cut", "endless"} <= refused
    assert KEY not in done.stdout + done.stderr
    assert not [path for path in tmp_path.rglob("*") if "escaped" in path.name]
    assert not Path("escaped.txt").exists()
