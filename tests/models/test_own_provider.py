"""The provider of docs/how-to/own-provider.md, taken from the page as it stands: tried, run, and refused what it cannot do."""

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from fakes import Asked, Fake, reply
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UserError, WeftError
from weft.models.registry import KEY_BY_HOST, info_of, parse_name, provider_info, resolve_endpoint
from weft.plugins import load_object
from weft.store.blobs import Blobs

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-provider.md"
QUICK = RetryPolicy(tries=2, rate_limit_tries=2, base=0.001, cap=0.002)
Stand = Callable[[Fake], Any]


class LumenServer(Fake):
    prefix = "/v2"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v2/draw", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked: Asked = await self.asked(request)
        for part in asked.body["script"]:
            asked.picture(part["show"]) if "show" in part else asked.text(part["say"])
        if self.says != "ok":
            return reply({"problem": {"kind": self.says, "text": "no"}})
        return reply(
            {"scroll": [{"say": "here"}, {"show": base64.b64encode(asked.drawing).decode()}], "spent": {"cents": 3}}
        )


@pytest.fixture
def lumen(tmp_path: Path) -> Path:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    (tmp_path / "lumen.py").write_text(code.group(1))
    return tmp_path / "lumen.py"


def test_it_runs_and_its_cost_is_the_one_it_reports(lumen: Path, toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(LumenServer())
    name, home = f"{lumen}:lumen/m@{fake.url}/v2", tmp_path / "home"
    run = weft.evaluate(
        "weave",
        data=toy,
        model=name,
        judge="constant/10",
        home=home,
        model_options={"style": "ink"},
        retry_policy=QUICK,
    )
    assert {turn.reply.outcome for turn in run.turns} == {"answered"} and fake.seen[0].body["style"] == "ink"
    assert {turn.reply.usage.cost for turn in run.turns} == {0.03} and fake.seen[-1].pictures
    known = info_of(load_object(f"{lumen}:lumen"))
    assert known is not None and known.key == "LUMEN_API_KEY" == KEY_BY_HOST.pop("api.lumen.example")


@pytest.mark.parametrize(("says", "outcome"), [("filtered", "refused"), ("busy", "failed"), ("odd", "failed")])
def test_its_errors_mean_what_they_mean(says: str, outcome: str, lumen: Path, toy: Path, tmp_path: Path, stand: Stand):
    model, home = f"{lumen}:lumen/m@{stand(LumenServer(says)).url}/v2", tmp_path / "home"
    run = weft.evaluate("weave", data=toy, model=model, judge="constant/1", home=home, retry_policy=QUICK, limit=1)
    assert run.turns[0].reply.outcome == outcome
    assert all(verdict.value is None for verdict in run.verdicts) is (outcome == "failed")
    with pytest.raises(EndpointDown):
        gone = f"{lumen}:lumen/m@{stand(LumenServer('broke')).url}/v2"
        weft.evaluate("weave", data=toy, model=gone, judge="constant/1", home=tmp_path / "other", retry_policy=QUICK)


def test_what_it_does_not_know_is_an_error(lumen: Path, blobs: Blobs):
    with pytest.raises(UserError, match="unknown option 'seed'"):
        resolve_endpoint(f"{lumen}:lumen/m@http://127.0.0.1:9/v2", blobs, {"seed": 1})
    assert (
        resolve_endpoint(
            f"{lumen}:lumen/m@http://127.0.0.1:9/v2", blobs, {"most_images": "2", "max_side": "64"}
        ).takes.max_images
        == 2
    )


def test_a_provider_that_cannot_be_used_is_one_line(blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "odd.py").write_text(
        "from weft.models.registry import provider_options\n@provider_options(a=int)\ndef raising(spec, blobs, "
        "**o):\n    raise ValueError('oops')\n"
        "@provider_options(a=int)\ndef wrong(spec, blobs, **o):\n    return 5\n"
    )
    for name, said in (("raising", "oops"), ("wrong", "made int, and no Endpoint")):
        with pytest.raises(WeftError, match=said):
            resolve_endpoint(f"{tmp_path}/odd.py:{name}/m", blobs)
    monkeypatch.setattr("weft.models.registry.list_providers", lambda: {"gone": ("no_such_module:x", "from gone")})
    with pytest.raises(UserError, match="the provider gone cannot be imported from no_such_module:x"):
        resolve_endpoint("gone/m", blobs)


ADDRESSES = [
    "openai-chat/x@127.0.0.1:8000/v1",
    "openai/x@localhost",
    "xai/x@my.host/v1",
    "gemini/x@my.host",
    "openai-chat/m@vllm/v1",
    "ark/m@ftp://h/v1",
]


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_without_its_beginning_goes_to_nobody(name: str, blobs: Blobs):
    with pytest.raises(UserError, match=r"an address begins with http:// or https://, as in \S+@http://"):
        resolve_endpoint(name, blobs)


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("openai/claude@20241022", "claude@20241022", ""),
        ("anthropic/claude@2.1", "claude@2.1", ""),
        ("openrouter/x@preset/mine", "x@preset/mine", ""),
        ("openrouter/google/gemini-2.5-flash-image:free", "google/gemini-2.5-flash-image:free", ""),
        ("openai-chat/org@me/model@http://h:1/v1", "org@me/model", "http://h:1/v1"),
        ("openai-chat/m@HTTP://10.0.0.5:8000/v1", "m", "HTTP://10.0.0.5:8000/v1"),
    ],
)
def test_a_name_may_have_a_sign_in_it(name: str, model: str, url: str):
    assert (parse_name(name).model, parse_name(name).url) == (model, url)


def test_nobody_says_where_anothers_key_goes():
    with pytest.raises(UserError, match="the key for api.openai.com is in OPENAI_API_KEY"):
        provider_info(url="https://api.openai.com/v1", key="CORP_KEY")
    provider_info(url="http://localhost:9/v1", key="CORP_KEY")
    assert "localhost" not in KEY_BY_HOST
