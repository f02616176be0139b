"""Keys of several shapes, echoed by a server in every way there is: found nowhere afterwards."""

import asyncio
import base64
import html
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS
from weft import secrets
from weft.errors import UserError
from weft.models import registry
from weft.models.http import HttpClient
from weft.models.http_endpoint import parse_address
from weft.secrets import strip_url_secrets
from weft.store.blobs import Blobs

KEYS = {
    "openai": "sk-proj-Xq7Lm2Vt9RzKc4Hn8WbYp3Jd6FsGa1",
    "hex": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "base64": "Zk9uK3Rq/2xW+7YpLm0QvA==nQ8rT5sJ",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJxN3IifQ.k2Pz8Lw-4Vt",
    "uuid": "3f2b8c1e-9d4a-4c7b-8e21-5a6f0b9c7d3e",
    "odd": "p@$$&w0rd%41\"'<x>~{}|^",
}
BODY = '{"error": {"message": "bad key %s given", "code": "x"}}'
OK = {
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}


def told(message: str, status: int = 400) -> bytes:
    data = json.dumps({"error": {"message": message}}).encode()
    return (
        b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data
    )


def raw(data: bytes, status: bytes = b"400 No", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(data) + data


def ok(**more: Any) -> bytes:
    return raw(json.dumps({**OK, **more}).encode(), b"200 OK")


def said(text: str, **message: Any) -> bytes:
    return ok(
        choices=[{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}]
    )


def escaped(key: str, form: str) -> str:
    return "".join(form % ord(char) for char in key)


ECHOES: dict[str, Callable[[str], bytes]] = {
    "error message": lambda key: told(f"bad key {key}"),
    "401": lambda key: told(f"bad key {key}", 401),
    "403": lambda key: told(f"bad key {key}", 403),
    "500": lambda key: told(f"bad key {key}", 500),
    "with bearer": lambda key: told(f"Authorization: Bearer {key}"),
    "status line": lambda key: b"HTTP/1.1 400 " + key.encode() + b"\r\nContent-Length: 2\r\n\r\n{}",
    "broken status line": lambda key: b"HTTP/9.x " + key.encode() + b"\r\n\r\n",
    "malformed header": lambda key: b"HTTP/1.1 200 OK\r\n" + key.encode() + b"\r\nContent-Length: 2\r\n\r\n{}",
    "header with a NUL": lambda key: (
        b"HTTP/1.1 200 OK\r\nX-Key: " + key.encode() + b"\0\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "bad length": lambda key: b"HTTP/1.1 200 OK\r\nContent-Length: " + key.encode() + b"\r\n\r\n{}",
    "redirect": lambda key: raw(
        b"", b"302 Found", b"Location: http://x.test/?key=" + urllib.parse.quote(key).encode() + b"\r\n"
    ),
    "redirect to user": lambda key: raw(
        b"", b"302 Found", b"Location: http://u:" + urllib.parse.quote(key, "").encode() + b"@x.test/\r\n"
    ),
    "model field": lambda key: ok(model=f"gpt {key}"),
    "content": lambda key: said(f"your key is {key}"),
    "reasoning": lambda key: said("hi", reasoning_content=f"the key is {key}"),
    "refusal": lambda key: said("", refusal=f"no, {key}"),
    "unknown field": lambda key: ok(debug={"headers": {"authorization": f"Bearer {key}"}, key: 1}),
    "plain text": lambda key: raw(f"<h1>bad key {key}</h1>".encode(), b"502 Bad Gateway"),
    "cut body": lambda key: raw((BODY % key).encode()[: 40 + len(key) // 2], b"400 No"),
    "far into the body": lambda key: told("x" * 290 + f" {key}"),
    "json escapes": lambda key: raw(('{"error": {"message": "bad ' + escaped(key, "\\u%04x") + '"}}').encode()),
    "escaped twice": lambda key: told(json.dumps({"inner": f"key {key}"})),
    "percent": lambda key: told(f"url ?key={urllib.parse.quote(key, '')}"),
    "percent all": lambda key: told(escaped(key, "%%%02X")),
    "entities": lambda key: told(html.escape(key)),
    "entities all": lambda key: told(escaped(key, "&#%d;")),
    "base64": lambda key: told(base64.b64encode(key.encode()).decode()),
    "basic auth": lambda key: told("Basic " + base64.b64encode(b"user:" + key.encode()).decode()),
    "hex": lambda key: told(key.encode().hex()),
    "python bytes": lambda key: told(repr(f"Bearer {key}".encode())),
    "upper case": lambda key: told(key.upper()),
    "first half": lambda key: told(f"bad key {key[: len(key) // 2]}..."),
    "picture that is none": lambda key: said(
        "", images=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{key}"}}]
    ),
    "link": lambda key: said(
        "", images=[{"type": "image_url", "image_url": {"url": f"http://x.test/{urllib.parse.quote(key, '')}"}}]
    ),
    "nothing, then a cut": lambda key: b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + (BODY % key).encode(),
}


def traces(key: str) -> list[str]:
    """What of a key must be found nowhere: any eight letters of it (sixteen of a hexadecimal one), and its usual
    encodings."""
    long = 16 if set(key) <= set("0123456789abcdef-") else 8
    parts = {key[at : at + long] for at in range(len(key) - long + 1)}
    whole = {
        key,
        urllib.parse.quote(key, ""),
        key.encode().hex(),
        base64.b64encode(key.encode()).decode().rstrip("="),
        html.escape(key),
    }
    return sorted(
        parts | whole | {json.dumps(key)[1:-1], escaped(key, "\\u%04x"), escaped(key, "&#%d;"), escaped(key, "%%%02X")}
    )


def found_in(key: str, texts: dict[str, bytes]) -> list[str]:
    looked_for = {trace: trace.encode().lower() for trace in traces(key)}
    lowered = {where: data.lower() for where, data in texts.items()}
    return [
        f"{where}: {trace!r}" for where, data in lowered.items() for trace, raw in looked_for.items() if raw in data
    ]


class Echo:
    """A server on a socket that says just what it is told to, byte by byte."""

    def __init__(self) -> None:
        self.answer = b""
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    data = b""
                    while b"\r\n\r\n" not in data:
                        data += connection.recv(65536)
                    head, _, body = data.partition(b"\r\n\r\n")
                    length = next(
                        (
                            int(line.split(b":")[1])
                            for line in head.split(b"\r\n")
                            if line.lower().startswith(b"content-length")
                        ),
                        0,
                    )
                    while len(body) < length:
                        body += connection.recv(65536)
                    self.requests.append(head + b"\r\n\r\n" + body)
                    connection.sendall(self.answer)
                except OSError:
                    continue

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


EVERY = os.environ.get("WEFT_EVERY_PROVIDER", "")


@pytest.mark.parametrize("shape", KEYS)
def test_a_key_that_is_echoed_is_found_nowhere(
    shape: str, echo: Echo, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """All ways through one process: what it printed, what it kept, what it reports. Each way meets every provider, with
    one of the keys; where EVERY is set, with each of them."""
    key, turn = KEYS[shape], [*KEYS].index(shape)
    script = f"""
import sys, urllib.parse
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
import weft, test_keys
from wires import http_models
from weft import api
from weft.errors import WeftError
from weft.cli.terminal import complain
from weft.calls.caller import RetryPolicy
from weft.workspace import open_journal
quick = RetryPolicy(tries=2, rate_limit_tries=2, empty_tries=1, base=0.001, cap=0.002)
echo = test_keys.Echo()
key = {key!r}
options = dict(data={str(toy)!r}, judge="constant/5", home="home", retry_policy=quick)
for at, (way, answer) in enumerate(test_keys.ECHOES.items()):
    echo.answer = answer(key)
    run = None
    token = "infer/" + echo.url + "/infer?token=" + urllib.parse.quote(key, "")
    chosen = [one for number, one in enumerate(http_models(echo.url).values()) if {bool(EVERY)} or (number + at) % {len(KEYS)} == {turn}]
    for provider in (*chosen, token):
        try:
            run = weft.evaluate("weave", model=provider, limit=1 + at % 2, **options)
        except WeftError as error:
            complain(error)
            run = api.load_run(open_journal("home"), "last")
    print(api.report([run]))
api.write_report([run], "report", home="home")
print(len(test_keys.ECHOES), len(echo.requests), sum(key.encode() in r for r in echo.requests))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        timeout=HANGS,
        env={**os.environ, "WEFT_API_KEY": key + " "},
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    ways, requests, with_key = (int(word) for word in done.stdout.split()[-3:])
    assert ways == len(ECHOES) >= 30 and requests > ways and with_key >= 25, "the key did go out"
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    for file in tmp_path.rglob("*"):
        if file.is_file() and not file.is_relative_to(toy):
            texts[str(file)] = file.read_bytes()
    assert any(name.endswith("journal.sqlite") for name in texts)
    assert not found_in(key, texts)


@pytest.mark.parametrize("key", ["sk-ümlaut-1234567890", "sk-two words-1234567", "sk-new\nline-1234567"])
def test_a_key_that_no_key_can_be_is_refused_without_being_told(
    blobs: Blobs, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEFT_API_KEY", key)
    with pytest.raises(
        UserError, match="the key in WEFT_API_KEY contains a space or a character that is not ASCII"
    ) as caught:
        registry.resolve_endpoint("openai-chat/m@http://127.0.0.1:9/v1", blobs)
    assert "1234567" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        "openai-chat/m@http://user:SECRETSECRET@127.0.0.1:9/v1",
        "openai-chat/m@http://SECRETSECRET@127.0.0.1:9/v1",
        "openai-chat/m@http://127.0.0.1:9/v1?api_key=SECRETSECRET",
        "infer/http://user:SECRETSECRET@127.0.0.1:9/infer",
        "infer/http://SECRETSECRET@[::1",
        "infer/ftp://127.0.0.1/x?token=SECRETSECRET",
        "infer/http://[::1",
        "infr/http://127.0.0.1/?token=SECRETSECRET",
        "cascade:reasoner=copy,painter=infr/http://127.0.0.1/?token=SECRETSECRET",
        "cascade:painter=infer/http://127.0.0.1/?token=SECRETSECRET",
        "infer/http://127.0.0.1:99999/",
        "openai-chat/m@http://[::1",
        "openai-chat/m@http://127.0.0.1:0x1/v1",
    ],
)
def test_an_address_with_a_key_in_it_is_not_repeated(blobs: Blobs, model: str):
    with pytest.raises(UserError) as caught:
        registry.resolve_model(model, blobs)
    assert "SECRET" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_query_is_sent_and_neither_kept_nor_told(blobs: Blobs, echo: Echo):
    from weft.types import Message, Request, Text

    echo.answer = raw(b'{"response": {"text": "hi"}}', b"200 OK")
    endpoint = registry.resolve_endpoint(f"infer/{echo.url}/infer?token=SECRETSECRET", blobs)

    async def ask() -> None:
        await endpoint.send((Message("user", (Text("x"),)),), Request("text"))
        await endpoint.close()

    asyncio.run(ask())
    assert b"POST /infer?token=SECRETSECRET " in echo.requests[0]
    assert "SECRET" not in f"{endpoint.identity} {endpoint.address} {endpoint.name}"


def test_the_name_of_a_composition_keeps_no_query(blobs: Blobs):
    wired = registry.resolve_model("cascade:reasoner=copy,painter=infer/http://127.0.0.1:9/i?token=SECRETSECRET", blobs)
    assert wired.name == "cascade:reasoner=copy,painter=infer/http://127.0.0.1:9/i"


def test_a_netrc_is_not_read(echo: Echo, blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".netrc").write_text(
        "machine 127.0.0.1 login me password from-netrc\nmachine x.test login me password from-netrc\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("http_proxy", echo.url)
    echo.answer = raw(b"{}", b"200 OK")

    async def ask() -> None:
        http = HttpClient(5)
        async with http.get("http://x.test/a", endpoint_name="x"):
            pass
        await http.close()

    asyncio.run(ask())
    assert echo.requests and b"GET http://x.test/a" in echo.requests[0], "through the proxy that the environment names"
    assert b"uthorization" not in echo.requests[0]


def test_what_is_too_short_to_be_a_key_stays_a_word():
    before = dict(secrets._hidden)
    for word in ("EMPTY", "none", "anything", "placeholder", "12345678", "generate"):
        secrets.hide(word)
    assert dict(secrets._hidden) == before and secrets.scrub("none of these is EMPTY") == "none of these is EMPTY"
    for key in (
        "sk-no-key-required",
        "sk-local-development-key",
        "token-abc123",
        "sk-1234567890abcdef",
        "correct-horse-battery-staple",
    ):
        secrets.hide(key)
        assert secrets.scrub(f"it is {key}.") == "it is [key]."
    plain = "what is required for local development: a token, a battery-powered horse, a staple, the number 12345678"
    assert secrets.scrub(plain) == plain, "words that are in a key are words"
    assert secrets.scrub("correct-horse-battery-stap") == "[key]", "most of it is it"


def test_what_a_server_links_to_is_not_hidden(blobs: Blobs, serve: Any, toy: Path, tmp_path: Path):
    """Else a model could choose what of its judge's replies is cut out."""
    import weft
    from server import answer

    def linked(seen: Any) -> dict[str, Any]:
        if seen.is_judge:
            return {"role": "assistant", "content": '{"reasoning": "poor", "score": 0}'}
        url = provider.url.removesuffix("/v1") + '/p.png?q="score": 0}&r=reasoning-poor'
        picture = {"role": "assistant", "content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}
        return picture if "image" in (seen.body.get("modalities") or ()) else answer(seen)

    provider = serve(answer=linked)
    from server import drawn

    provider.files["/p.png"] = drawn("p")
    model, judge = (f"openai-chat/{name}@{provider.url}" for name in ("model", "judge"))
    run = weft.evaluate("weave", data=toy, model=model, judge=judge, home=tmp_path / "home")
    assert run.verdicts and all(verdict.value == 0 for verdict in run.verdicts if verdict.by == "judge")
    assert sum(seen.is_judge for seen in provider.seen) <= sum(verdict.by == "judge" for verdict in run.verdicts)


def test_texts_around_a_key_stay_as_they_are():
    secrets.hide("sk-canary-Kd83hQpLz01")
    plain = 'The score is 5; see §3 (ünïcode, "quotes", 100%, a&b, C:\\path\\u0041) and abcdefghijklmnopqrstuvwxyz.'
    assert secrets.scrub(plain) == plain
    assert secrets.scrub(f"{plain} sk-canary-Kd83hQpLz01, {plain}") == f"{plain} [key], {plain}"


def test_addresses_are_kept_without_what_may_be_secret():
    assert strip_url_secrets("http://u:p@h:1/a/b?x=1#y") == "http://h:1/a/b"
    both = "cascade:reasoner=infer/http://u:p@h:1/a?t=SECRET,painter=openai-chat/m@https://x.test/v1?k=SECRET#z"
    assert strip_url_secrets(both) == "cascade:reasoner=infer/http://h:1/a,painter=openai-chat/m@https://x.test/v1"
    assert strip_url_secrets("what? a@b #c 100%") == "what? a@b #c 100%"
    assert parse_address("https://h.test/v1").hostname == "h.test"
