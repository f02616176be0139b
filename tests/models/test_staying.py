"""Answers that stay where a model moves, and are not taken where it may be another."""

import asyncio
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UserError, WeftError
from weft.evaluation.config import RunConfig
from weft.evaluation.reuse_notes import find_reuse_notes
from weft.evaluation.session import open_run
from weft.models.endpoint import normalise_address
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft_tabletop.make import make

Serve = Callable[..., Provider]
QUICK = RetryPolicy(tries=4, base=0.001, cap=0.002, unreachable_tries=2)


def run(toy: Path, home: Path, model: Any, **more: Any) -> weft.Run:
    return weft.evaluate("weave", data=toy, home=home, model=model, judge="constant/5", retry_policy=QUICK, **more)


def calls(made: weft.Run) -> int:
    return sum(total.calls for total in made.totals)


def at(provider: Provider, host: str = "127.0.0.1") -> str:
    return f"openai-chat/model@{provider.url.replace('127.0.0.1', host)}"


def test_localhost_is_this_machine(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    first = run(toy, tmp_path, at(provider))
    again = run(toy, tmp_path, at(provider, "localhost"))
    assert again.id == first.id and provider.count == calls(first)
    assert (
        normalise_address("http://LOCALHOST:1/v1") == "http://127.0.0.1:1/v1"
        and normalise_address("http://a.localhost/x") == "http://a.localhost/x"
    )


def test_answers_from_before_are_found_under_the_other_spelling(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    provider = serve()
    with monkeypatch.context() as before:
        before.setattr("weft.models.endpoint.normalise_address", lambda url: url)
        run(toy, tmp_path, at(provider, "localhost"))
    asked = provider.count
    run(toy, tmp_path, at(provider, "localhost"))
    assert provider.count == asked


def test_a_model_with_a_version_keeps_its_answers_at_another_address(toy: Path, tmp_path: Path, serve: Serve):
    one, two = serve(), serve()
    first = run(toy, tmp_path, at(one), model_options={"version": "step-2"})
    moved = run(toy, tmp_path, at(two), model_options={"version": "step-2"})
    assert moved.id == first.id and two.count == 0
    run(toy, tmp_path, at(two), model_options={"version": "step-4"})
    assert two.count == one.count, "another version is another model"
    assert "version step-4" in run(toy, tmp_path, at(two), model_options={"version": "step-4"}).name


def test_two_models_of_weft_toml_share_nothing_though_their_servers_call_them_the_same(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    one, two = serve(), serve()
    text = "".join(
        f'[models.{name}]\nuse = "{at(server)}"\nversion = "1"\n' for name, server in (("a", one), ("b", two))
    )
    (tmp_path / "weft.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    first, second = run(toy, tmp_path / "home", "a"), run(toy, tmp_path / "home", "b")
    assert one.count == two.count > 0 and (first.record.names["model"], second.name.partition(" ")[0]) == ("a", "b")


def test_without_a_version_another_address_is_another_model_and_it_is_said_why(toy: Path, tmp_path: Path, serve: Serve):
    one, two = serve(), serve()
    first = run(toy, tmp_path, at(one))

    async def doubts() -> list[str]:
        job = RunConfig(benchmark="weave", data=toy, home=tmp_path, model=at(two), judge="constant/5")
        async with open_run(job, dry=True) as session:
            return session.reuse_notes

    told = asyncio.run(doubts())
    assert len(told) == 1 and first.id in told[0] and one.url in told[0] and two.url in told[0] and "version" in told[0]
    run(toy, tmp_path, at(two))
    assert two.count == one.count


MODEL = """
def model(messages, want):
    open({log!r}, "a").write("x")
    return "I do not know."
"""


def test_a_project_can_be_copied_and_an_edit_asks_anew(toy: Path, tmp_path: Path):
    log = tmp_path / "log"
    project = tmp_path / "project"
    project.mkdir()
    (project / "mine.py").write_text(MODEL.format(log=str(log)))
    run(toy, project / ".weft", f"{project / 'mine.py'}:model")
    asked = len(log.read_text())
    shutil.copytree(project, tmp_path / "copy")
    run(toy, tmp_path / "copy" / ".weft", f"{tmp_path / 'copy' / 'mine.py'}:model")
    assert len(log.read_text()) == asked > 0
    (project / "mine.py").write_text(MODEL.format(log=str(log)) + "# other weights\n")
    run(toy, project / ".weft", f"{project / 'mine.py'}:model")
    assert len(log.read_text()) == 2 * asked


def test_several_addresses_share_the_work_and_a_dead_one_is_left_out(toy: Path, tmp_path: Path, serve: Serve):
    one, two = serve(), serve()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = free.getsockname()[1]
    name = f"openai-chat/model@{one.url},http://127.0.0.1:{dead}/v1,{two.url}"
    made = run(toy, tmp_path / "home", name, concurrency=1)  # one at a time, so that none is slower than another
    assert all(turn.reply.outcome == "answered" for turn in made.turns)
    assert one.count + two.count == calls(made) and abs(one.count - two.count) <= 1, "evenly"
    again = run(toy, tmp_path / "home", f"openai-chat/model@{one.url}")
    assert calls(again) == 0 or again.id == made.id, "under the first address its answers are kept"


def test_addresses_that_are_none_are_errors_and_never_a_call_to_somebody_else(tmp_path: Path):
    blobs = Blobs(tmp_path)
    for wrong in (
        "m@gpu7",
        "m@gpu7:8000/v1",
        "m@localhost",
        "m@http://127.0.0.1:1/v1,gpu8:8000/v1",
        "m@http://127.0.0.1:1/v1,",
        "m@ftp://x/v1",
    ):
        with pytest.raises(UserError, match="http"):
            resolve_endpoint(f"openai-chat/{wrong}", blobs)
    with pytest.raises(UserError, match="NOT_SET"):
        resolve_endpoint("openai-chat/m@http://127.0.0.1:1/v1", blobs, {"key_env": "NOT_SET"})
    with pytest.raises(UserError, match="version"):
        resolve_endpoint("openai-chat/m@http://127.0.0.1:1/v1", blobs, {"name": "x"})


# before the first picture is paid for


def checked(toy: Path, home: Path, model: str, judge: str) -> weft.Run:
    return weft.evaluate("weave", data=toy, home=home, model=model, judge=judge, retry_policy=QUICK, preflight=True)


def test_a_judge_that_cannot_answer_by_a_schema_is_found_before_the_model_is_asked(
    toy: Path, tmp_path: Path, serve: Serve
):
    model = serve()
    judge = serve(answer=lambda seen: {"role": "assistant", "content": "I like it."})
    with pytest.raises(EndpointDown, match="cannot answer by a schema.*I like it.*--no-preflight"):
        checked(toy, tmp_path, at(model), f"openai-chat/judge@{judge.url}")
    assert model.count <= 1 and judge.count == 2, "the model was asked one small question, and nothing else"


def test_an_address_that_nobody_answers_at_is_found_before_the_model_is_asked(toy: Path, tmp_path: Path, serve: Serve):
    model = serve()
    with pytest.raises(WeftError):
        checked(toy, tmp_path, at(model), "openai-chat/judge@http://127.0.0.1:9/v1")
    assert model.count <= 1


def test_who_answers_is_asked_once_and_not_again_where_all_is_answered(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    judge = f"openai-chat/judge@{provider.url}"
    made = checked(toy, tmp_path, at(provider), judge)
    assert provider.count == calls(made) + 2, "a small question to each"
    asked = provider.count
    again = checked(toy, tmp_path, at(provider), judge)
    assert provider.count == asked and again.id == made.id


def test_a_judge_that_talks_nonsense_twenty_times_in_a_row_ends_the_run(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weft.judges.vlm.MAX_UNUSABLE_REPLIES", 20)
    make("tabletop-weave", tmp_path / "tables", samples=40, seed=0)

    def nonsense(seen: Any) -> dict[str, Any]:
        if (
            len(seen.body["messages"]) > 2
        ):  # a second try: the journal must keep up with the replies, on a busy machine too
            time.sleep(0.01)
        return {"role": "assistant", "content": "no"}

    provider = serve(answer=nonsense)
    ends: dict[str, Any] = {"model": "tabletop/oracle", "judge": f"openai-chat/judge@{provider.url}"}
    with pytest.raises(WeftError, match="20 questions in a row"):
        weft.evaluate("weave", data=tmp_path / "tables", home=tmp_path / "home", concurrency=2, **ends)
    questions = len(
        weft.evaluate(
            "weave", data=tmp_path / "tables", home=tmp_path / "home", model="reference", judge="constant/5"
        ).verdicts
    )
    assert provider.count < 1.7 * questions, "each would have been asked twice"


@pytest.mark.parametrize(
    ("address", "assumed"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://100.64.1.2:8000/v1", True),  # a private network of one's own machines
        ("http://34.1.2.3:8000/v1", True),
        ("https://gpu.example.com/v1", True),
        ("https://api.openai.com/v1", False),
    ],
)
def test_it_is_said_that_a_server_is_taken_to_have_the_same_weights(
    address: str, assumed: bool, toy: Path, tmp_path: Path, serve: Serve
):
    server = serve()
    first = run(toy, tmp_path, at(server))
    endpoint = resolve_endpoint(at(server), Blobs(tmp_path / "blobs"))
    endpoint.address = address
    notes = find_reuse_notes([first.record], first.id, first.record.manifest, endpoints={"model": endpoint})
    assert [f"same weights are still served at {address}" in note for note in notes] == [True] * assumed
