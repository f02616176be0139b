"""Weights by their names on a hub, which is on loopback."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from waiting import HANGS

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GO = """
import asyncio, sys
from pathlib import Path
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Text, Request
blobs = Blobs(Path(sys.argv[1]) / "blobs")
options = {"max_tokens": "4"} if sys.argv[2].startswith("hf/") else {}
model = resolve_endpoint(sys.argv[2], blobs, {**options, **dict(one.split("=") for one in sys.argv[3:])})
told = []
model._set_progress = lambda text: told.append(text)
sent = asyncio.run(model.send((Message("user", (Text("Hi"),)),), Request("text")))
print(model.name, model.identity["commit"], sent.outcome in ("answered", "empty"), any("fetching" in one for one in told))
print(model.missing_setup)
"""


class Hub(BaseHTTPRequestHandler):
    files: dict[str, bytes]
    asked: list[str]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        name = path.partition("/resolve/")[2].partition("/")[2]
        if path.startswith("/api/models/deepseek-community/Janus-Pro-1B") or path.startswith("/api/models/me/mine"):
            said = {"id": "me/mine", "sha": COMMIT, "siblings": [{"rfilename": one} for one in self.files]}
            tree = [
                {"type": "file", "path": one, "size": len(data), "oid": "1" * 40} for one, data in self.files.items()
            ]
            data = json.dumps(tree if "/tree/" in path else said).encode()
        elif name in self.files and ("/me/mine/" in path or "/deepseek-community/Janus-Pro-1B/" in path):
            data = self.files[name]
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound" if "/me/mine/" in path else "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json" if path.startswith("/api/") else "application/octet-stream")
        self.send_header("ETag", f'"{len(data)}-{name[:4]}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def hub(tiny: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """A program with this hub and a cache of its own, beside what it prints."""
    folder = tiny("janus")
    Hub.files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    Hub.files["pytorch_model.bin"] = b"a pickle"
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()

    def go(*arguments: str, online: bool = True) -> subprocess.CompletedProcess[str]:
        env = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
        }
        env |= {
            "PATH": "/usr/bin",
            "HOME": str(tmp_path),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_OFFLINE": "0" if online else "1",
        }
        command = [sys.executable, "-c", GO, str(tmp_path / "home"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=HANGS)

    yield go
    server.shutdown()


def test_by_name_from_a_hub_and_then_from_its_cache(hub: Callable[..., subprocess.CompletedProcess[str]]):
    done = hub("hf/me/mine")
    assert done.stdout.splitlines()[0] == f"hf/me/mine {COMMIT} True True", done.stderr[-2000:]
    assert not [path for path in Hub.asked if path.endswith(".bin")], "a pickle was fetched"
    again = hub("hf/me/mine", f"revision={COMMIT}", online=False)
    assert again.stdout.splitlines()[0].startswith(f"hf/me/mine {COMMIT} True"), again.stderr[-2000:]


def test_weights_in_their_authors_layout_have_a_twin_and_it_is_said(
    hub: Callable[..., subprocess.CompletedProcess[str]],
):
    done = hub("hf/deepseek-ai/Janus-Pro-1B")
    first, second = done.stdout.splitlines()
    assert first.startswith(f"hf/deepseek-community/Janus-Pro-1B {COMMIT} True"), done.stderr[-2000:]
    assert "the same weights" in second


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hf/nobody/nothing", "no such folder here, and no such repository on the hub"),
        ("diffusers/me/mine", "has no model_index.json; if it is of the other kind, write hf/me/mine"),
    ],
)
def test_what_a_hub_has_not_is_said(hub: Callable[..., subprocess.CompletedProcess[str]], name: str, why: str):
    done = hub(name)
    assert why in done.stderr.splitlines()[-1], done.stderr[-2000:]
