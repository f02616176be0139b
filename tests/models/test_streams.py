"""A planner whose words come as a stream: pictures are begun while it is still writing; streams that are cut, broken or
refused; the reply is the one that would have come at once."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from server import Provider, Seen, data_url, drawn
from waiting import comes_to_an_end, until_in_loop
from weft.calls.caller import RetryPolicy
from weft.models.endpoint import CallError
from weft.models.event_stream import ChatEventStream
from weft.store.journal import Journal

Serve = Callable[..., Provider]
PLAN = 'One.<imagine uses="none">a</imagine>Two.<imagine uses="1">b</imagine>Three, at length.<imagine uses="none">c</imagine>End.'


def prompts(folder: Path, count: int = 1) -> Path:
    folder.mkdir(parents=True)
    lines = [
        {"id": f"p{at}", "category": "Daily Life", "input": f"Guide {at}.", "required_images": 3} for at in range(count)
    ]
    (folder / "weaverbench.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def painted(seen: Seen) -> dict[str, Any]:
    if "modalities" not in seen.body:
        return {"role": "assistant", "content": PLAN}
    return {"role": "assistant", "content": "", "images": [{"image_url": {"url": data_url(drawn(seen.digest, 64))}}]}


def events(pieces: list[str], *, done: bool = True, usage: bool = True) -> list[bytes]:
    made = [{"model": "p", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    if done:
        made.append({"model": "p", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    made += (
        [{"model": "p", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 9}}] if usage and done else []
    )
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in made] + ([b"data: [DONE]\n\n"] if done else [])


def streaming(
    pieces: Callable[[int], list[bytes]], until: Callable[[], Any] = lambda: True, after: int | None = None
) -> Any:
    """Requests that ask for a stream get one, by how often they came. It pauses after so many pieces, or else before it
    ends, until something has happened."""

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        if not seen.body.get("stream"):
            return None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        made = pieces(times)
        for piece in made[:after]:
            await response.write(piece)
        await until_in_loop("what the planner pauses for", until)
        for piece in made[after:] if after is not None else ():
            await response.write(piece)
        return response

    return fault


def evaluate(tmp_path: Path, plans: Provider, paints: Provider, **more: Any) -> weft.Run:
    model = f"weaver:planner=openai-chat/p@{plans.url},visualizer=openai-chat/v@{paints.url}"
    data = tmp_path / "data" if (tmp_path / "data").exists() else prompts(tmp_path / "data")
    quick = RetryPolicy(tries=3, rate_limit_tries=3, base=0.01)
    return weft.evaluate(
        "weaverbench", data=data, home=tmp_path / "home", model=model, judge="constant/max", retry_policy=quick, **more
    )


def in_pieces(text: str, size: int = 6) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_pictures_are_begun_while_the_planner_is_still_writing(tmp_path: Path, serve: Serve):
    """It does not write the third order before two pictures are asked for."""
    paints = serve(answer=painted)
    two_orders = len(PLAN[: PLAN.index(", at length")]) // 6
    plans = serve(
        answer=painted,
        fault=streaming(lambda times: events(in_pieces(PLAN)), until=lambda: paints.count == 2, after=two_orders),
    )
    run = evaluate(tmp_path, plans, paints)
    reply = run.turns[0].reply
    assert reply.outcome == "answered" and len(reply.images) == 3 and reply.text.startswith("One.")
    assert plans.seen[0].body["stream"] is True and plans.count == 1 and paints.count == 3
    assert {total.role: (total.tokens_in, total.tokens_out) for total in run.totals}["planner"] == (7, 9)


def test_the_reply_is_the_one_that_would_have_come_at_once(tmp_path: Path, serve: Serve):
    plans, paints = (
        serve(answer=painted, fault=streaming(lambda times: events(in_pieces(PLAN, 3)))),
        serve(answer=painted),
    )
    streamed = evaluate(tmp_path / "a", plans, paints)
    whole = evaluate(tmp_path / "b", serve(answer=painted), paints)
    assert streamed.turns[0].reply.parts == whole.turns[0].reply.parts
    assert [seen.body["messages"] for seen in paints.seen[:3]] == sorted(
        (seen.body["messages"] for seen in paints.seen[3:]),
        key=[seen.body["messages"] for seen in paints.seen[:3]].index,
    ), "and so is what the visualizer was asked"
    count = plans.count + paints.count
    evaluate(tmp_path / "a", plans, paints)
    assert plans.count + paints.count == count


def test_a_stream_that_is_cut_is_asked_for_again(tmp_path: Path, serve: Serve):
    """What was drawn by then is not drawn twice."""

    def pieces(times: int) -> list[bytes]:
        return events(in_pieces(PLAN)[:9], done=False) if times == 1 else events(in_pieces(PLAN))

    paints = serve(answer=painted)
    plans = serve(answer=painted, fault=streaming(pieces, until=lambda: paints.count))
    run = evaluate(tmp_path, plans, paints)
    assert run.turns[0].reply.outcome == "answered" and len(run.turns[0].reply.images) == 3
    assert plans.count == 2 and paints.count == 3 and sum(total.retries for total in run.totals) == 1


def test_a_plan_that_changes_at_the_second_try_costs_what_was_begun(tmp_path: Path, serve: Serve):
    other = PLAN.replace(">a<", ">z<")

    def pieces(times: int) -> list[bytes]:
        return events(in_pieces(PLAN)[:9], done=False) if times == 1 else events(in_pieces(other))

    paints = serve(answer=painted)
    plans = serve(answer=painted, fault=streaming(pieces, until=lambda: paints.count))
    run = evaluate(tmp_path, plans, paints)
    reply = run.turns[0].reply
    assert len(reply.images) == 3 and paints.count == 4 and len(reply.keys) == 5, (
        "the one that nobody needs is behind it, and in the cost"
    )


def test_a_stream_that_is_always_cut_fails(tmp_path: Path, serve: Serve):
    plans, paints = (
        serve(answer=painted, fault=streaming(lambda times: events(["One."], done=False))),
        serve(answer=painted),
    )
    run = evaluate(tmp_path, plans, paints)
    assert run.turns[0].reply.outcome == "failed" and "the stream was cut before its end" in run.turns[0].reply.reason
    assert all(verdict.value is None for verdict in run.verdicts)


@pytest.mark.parametrize("field", ["stream_options", "stream"])
def test_a_server_that_knows_no_streams(tmp_path: Path, serve: Serve, field: str):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        if seen.body.get(field):
            return web.json_response({"error": {"message": f"unknown field {field}"}}, status=400)
        if seen.body.get("stream"):
            return await streaming(lambda times: events(in_pieces(PLAN), usage=False))(seen, times, request)
        return None

    plans, paints = serve(answer=painted, fault=fault), serve(answer=painted)
    run = evaluate(tmp_path, plans, paints)
    assert len(run.turns[0].reply.images) == 3
    assert not plans.seen[-1].body.get(field) and plans.count == 2


def test_an_error_inside_a_stream_is_an_error(tmp_path: Path, serve: Serve):
    wrong = b'data: {"error": {"message": "overloaded", "code": 503}}\n\n'
    plans, paints = (
        serve(answer=painted, fault=streaming(lambda times: [*events(["One."], done=False), wrong])),
        serve(answer=painted),
    )
    run = evaluate(tmp_path, plans, paints)
    assert run.turns[0].reply.outcome == "failed" and "overloaded" in run.turns[0].reply.reason


def test_pieces_of_any_size_are_put_together():
    heard: list[str | None] = []
    text = "".join(part.decode() for part in events(in_pieces("Ünïcode <b> and </imagine> more", 2)))
    data = (": a comment\n\nevent: x\n" + text).encode()
    for size in (1, 3, 17, len(data)):
        heard.clear()
        stream = ChatEventStream(heard.append, "x")
        for at in range(0, len(data), size):
            stream.feed(data[at : at + size])
        body = stream.build_body()
        assert (
            body["choices"][0]["message"]["content"] == "Ünïcode <b> and </imagine> more"
            and body["usage"]["prompt_tokens"] == 7
        )
        assert heard[0] is None and "".join(one or "" for one in heard) == "Ünïcode <b> and </imagine> more"


def test_what_is_no_stream_is_refused():
    stream = ChatEventStream(lambda text: None, "x")
    with pytest.raises(CallError, match="broken piece"):
        stream.feed(b"data: {nonsense\n")
    with pytest.raises(CallError, match="cut before its end"):
        ChatEventStream(lambda text: None, "x").build_body()
    odd = ChatEventStream(lambda text: None, "x")
    odd.feed(
        b'data: {"choices": [7]}\ndata: 5\ndata: '
        b'{"choices": [{"delta": {"content": 3, "refusal": "no"}, "finish_reason": "stop"}]}\n'
    )
    with pytest.raises(CallError, match="an unknown format"):
        odd.build_body()
    refused = ChatEventStream(lambda text: None, "x")
    refused.feed(b'data: {"choices": [{"delta": {"refusal": "no", "reasoning": "hm"}, "finish_reason": "stop"}]}\n')
    assert refused.build_body()["choices"][0]["message"] == {
        "role": "assistant",
        "content": "",
        "refusal": "no",
        "reasoning_content": "hm",
    }


def test_a_key_that_a_planner_echoes_goes_nowhere(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch):
    key = "sk-Zq81canary7719xyzw"
    monkeypatch.setenv("WEFT_API_KEY", key)
    plan = f'One.<imagine uses="none">a sign that says {key}</imagine>End.'
    plans, paints = serve(answer=painted, fault=streaming(lambda times: events(in_pieces(plan)))), serve(answer=painted)
    evaluate(tmp_path, plans, paints)
    assert paints.count == 1 and not any(key in json.dumps(seen.body) for seen in paints.seen), (
        "and it is not bought twice"
    )
    stored = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("journal.sqlite*"))
    assert key.encode() not in stored


def test_content_as_a_list_of_parts_is_read(tmp_path: Path, serve: Serve):
    def pieces(times: int) -> list[bytes]:
        made = [{"choices": [{"delta": {"content": [{"type": "text", "text": piece}]}}]} for piece in in_pieces(PLAN)]
        return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in made] + [b"data: [DONE]\n\n"]

    plans, paints = serve(answer=painted, fault=streaming(pieces)), serve(answer=painted)
    assert len(evaluate(tmp_path, plans, paints).turns[0].reply.images) == 3


def test_a_form_that_is_not_known_is_asked_for_at_once(tmp_path: Path, serve: Serve):
    odd = b'data: {"choices": [{"delta": {"content": {"words": "x"}}, "finish_reason": "stop"}]}\n\n'
    plans, paints = serve(answer=painted, fault=streaming(lambda times: [odd])), serve(answer=painted)
    run = evaluate(tmp_path, plans, paints)
    assert len(run.turns[0].reply.images) == 3 and [seen.body["stream"] for seen in plans.seen] == [True, False]


def test_what_a_stream_is_wrapped_in_does_not_count(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.models.providers.openai_chat.MAX_TEXT_BYTES", 4000)
    plans, paints = (
        serve(answer=painted, fault=streaming(lambda times: events(in_pieces(PLAN, 1)))),
        serve(answer=painted),
    )
    assert len(evaluate(tmp_path, plans, paints).turns[0].reply.images) == 3
    endless = serve(answer=painted, fault=streaming(lambda times: events(["x" * 5000])))
    assert "sent more than" in evaluate(tmp_path / "b", endless, paints).turns[0].reply.reason


def planned(home: Path) -> int:
    journal = Journal(home / "journal.sqlite", readonly=True)
    try:
        return int(journal._rows("SELECT COUNT(*) FROM calls WHERE role = 'planner'")[0][0])
    finally:
        journal.close()


def chained(count: int, word: str) -> str:
    return "".join(f"{at}.<imagine>{word} {at}</imagine>" for at in range(count))


def test_pictures_of_a_plan_that_was_given_up_are_not_bought(tmp_path: Path, serve: Serve):
    """Those that are being drawn come back; those that wait for them are not asked for."""

    def pieces(times: int) -> list[bytes]:
        return events([chained(12, "old")], done=False) if times == 1 else events(["Short.<imagine>new</imagine>"])

    def drawing(home: Path) -> Provider:
        async def late(seen: Seen, times: int, request: web.Request) -> None:
            if "old 0" in " ".join(seen.texts):
                await until_in_loop("the planner's last word in the journal", lambda: planned(home))

        return serve(answer=painted, fault=late)

    paints = drawing(tmp_path / "home")
    plans = serve(answer=painted, fault=streaming(pieces, until=lambda: paints.count))
    run = evaluate(tmp_path, plans, paints)
    assert len(run.turns[0].reply.images) == 1 and paints.count <= 3
    slow = drawing(tmp_path / "b" / "home")
    never = serve(
        answer=painted,
        fault=streaming(lambda times: events([chained(12, "old")], done=False), until=lambda: slow.count),
    )
    assert evaluate(tmp_path / "b", never, slow).turns[0].reply.outcome == "failed" and slow.count <= 3


def test_a_planner_that_writes_nothing_but_tags_keeps_nobody_waiting(tmp_path: Path):
    from weft.models.compose.weaver import _Drawing

    async def heard(piece: str, times: int) -> None:
        async def draw(*_: Any) -> Any:
            raise AssertionError

        drawing = _Drawing(draw)
        drawing.hear(None)
        for _ in range(times):
            drawing.hear(piece)

    for piece in ("</imagine>", "<imagine></imagine>", ">", "a"):
        with comes_to_an_end("a plan that takes hours, were it heard in quadratic time"):
            asyncio.run(heard(piece, 100_000))


def test_letters_that_grow_when_they_are_small(tmp_path: Path, serve: Serve):
    plan = "İ" * 40 + '<imagine uses="none">a big red dog</imagine><imagine uses="none">a cat</imagine>'
    plans, paints = (
        serve(answer=painted, fault=streaming(lambda times: events(in_pieces(plan, 4)))),
        serve(answer=painted),
    )
    assert len(evaluate(tmp_path, plans, paints).turns[0].reply.images) == 2 and paints.count == 2


def test_what_a_user_gave_is_not_dropped_for_ever(tmp_path: Path, serve: Serve):
    """A server that will not have it is told of, and asked once."""

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": "stream is not supported"}}, status=400)

    provider = serve(answer=painted, fault=fault)
    model = f"openai-chat/m@{provider.url}"
    data = prompts(tmp_path / "data")
    run = weft.evaluate(
        "weaverbench",
        data=data,
        home=tmp_path,
        model=model,
        judge="constant/max",
        model_options={"extra": {"stream": True}},
    )
    assert run.turns[0].reply.outcome == "failed" and provider.count < 5
