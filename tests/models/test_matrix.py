"""Provider by capability, as `weft models` tells it, each cell proved on a socket: what a provider can do, it does, and
what it cannot is refused before it is asked. Then the ways in which each ends, and two turns with the model's own
picture."""

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace

from fakes import FAKES, Asked, DashScope, Fake, Responses
from fakes import reply as reply_of
from fuzz.images import OPTIONS, SAID, shown
from fuzz.images import image as picture_that_speaks
from server import drawn
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown, RetryPolicy, strip_foreign_state
from weft.calls.prices import upper_bound
from weft.errors import UserError
from weft.models.adapt import adapt_messages, adapt_messages_async
from weft.models.endpoint import CallError, Endpoint, EndpointReply, TaskEndpoint
from weft.models.http import parse_error
from weft.models.registry import info_of, list_providers, resolve_endpoint
from weft.plugins import load_target
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Gives, Image, Message, Reply, Request, State, Takes, Text, Thought

QUICK = RetryPolicy(tries=3, rate_limit_tries=3, base=0.001, cap=0.002)
SMALL = drawn("small", 30)
WAYS: dict[str, tuple[type[Fake], dict[str, Any]]] = {
    **{name: (kind, {}) for name, kind in FAKES.items()},
    "openai-images, as JSON": (FAKES["openai-images"], {"edits": "json"}),
    "openai-responses, stateless": (Responses, {"history": "stateless"}),
    "dashscope, as tasks": (DashScope, {"mode": "task"}),
    "dashscope, as tasks of messages": (DashScope, {"mode": "task-messages"}),
}
DRAWING = [name for name, (kind, _) in WAYS.items() if kind.pictures_out]


def declared(way: str) -> tuple[Takes, Gives]:
    known = info_of(load_target(list_providers()[WAYS[way][0].provider][0]))
    assert known is not None
    return known.takes, known.gives


class Talk:
    """One model behind a fake, asked as a run asks it."""

    def __init__(self, fake: Fake, caller: Caller, endpoint: Endpoint, blobs: Blobs, journal: Journal) -> None:
        self.fake, self.caller, self.endpoint, self.blobs, self.journal = fake, caller, endpoint, blobs, journal

    async def ask(self, *messages: Message, want: Request = Request("image")) -> Reply:
        return await self.caller.reply(await adapt_messages_async(messages, self.caller.takes, self.blobs), want)

    @property
    def last(self) -> Asked:
        return self.fake.seen[-1]


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[Blobs]:
    yield Blobs(tmp_path / "blobs")


def talk(way: str, blobs: Blobs, work: Callable[[Talk], Any], says: str = "ok", **options: Any) -> Any:
    kind, usual = WAYS[way]

    async def talked() -> Any:
        async with kind(says).up() as fake:
            endpoint = resolve_endpoint(fake.name, blobs, {**usual, **options})
            if isinstance(endpoint, TaskEndpoint):
                endpoint.poll_interval = 0.001
            journal = Journal(blobs.root / "journal.sqlite")
            caller = Caller(
                endpoint, role="model", journal=journal, budget=Budget(), retry_policy=QUICK, blobs=blobs, run="r"
            )
            try:
                return await work(Talk(fake, caller, endpoint, blobs, journal))
            finally:
                await endpoint.close()
                journal.close()

    return asyncio.run(talked())


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


# what each can do


@pytest.mark.parametrize("way", WAYS)
def test_words(way: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        reply = await one.ask(user("say hello"), want=Request("text"))
        assert (
            (reply.outcome, reply.text) == ("answered", "hello")
            if declared(way)[1].text
            else (reply.outcome == "empty" and not one.fake.seen)
        )

    talk(way, blobs, work)


@pytest.mark.parametrize("way", WAYS)
def test_pictures(way: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        reply = await one.ask(user("draw a cat"))
        if not declared(way)[1].image:
            assert reply.outcome == "empty" and "not images" in reply.reason and not one.fake.seen
            return
        assert reply.outcome == "answered" and reply.last_image is not None and reply.finish_reason == "ok"
        assert blobs.read(reply.last_image) == one.last.drawing and reply.last_image.media_type == "image/png"
        assert one.last.coded[:40] not in "".join(call.raw for call in one.journal.calls(reply.keys).values())

    talk(way, blobs, work)


@pytest.mark.parametrize("way", DRAWING)
@pytest.mark.parametrize("format", OPTIONS)
def test_a_picture_is_kept_without_what_it_says(way: str, format: str, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    saying = picture_that_speaks(format, random.Random(5))
    monkeypatch.setattr(Asked, "drawing", saying)

    async def work(one: Talk) -> None:
        reply = await one.ask(user("draw a cat"))
        assert reply.outcome == "answered" and reply.last_image is not None, reply.reason
        assert SAID in saying and SAID not in blobs.read(reply.last_image)
        assert shown(blobs.read(reply.last_image)) == shown(saying)
        kept = [path for path in blobs.root.rglob("*") if path.is_file() and SAID in path.read_bytes()]
        assert not kept

    talk(way, blobs, work)


@pytest.mark.parametrize("way", WAYS)
def test_words_and_pictures_in_one_reply_in_their_order(way: str, blobs: Blobs):
    gives = declared(way)[1]

    async def work(one: Talk) -> None:
        reply = await one.ask(user("a story with a picture"), want=Request("interleaved"))
        kinds = [type(part) for part in reply.output]
        assert reply.outcome == "answered" and (Text in kinds and Image in kinds) is gives.interleaved
        if gives.interleaved and gives.ordered:
            assert kinds[:3] == [Text, Image, Text]

    talk(way, blobs, work, "both" if gives.ordered and gives.interleaved else "ok")


@pytest.mark.parametrize("way", WAYS)
def test_thoughts_are_kept_and_are_no_answer(way: str, blobs: Blobs):
    gives = declared(way)[1]

    async def work(one: Talk) -> None:
        reply = await one.ask(user("think"), want=Request("image" if gives.image else "text"))
        assert ("let me see" in reply.thoughts) is gives.thoughts and "let me see" not in reply.text
        assert len(reply.images) == gives.image  # a draft is none

    talk(way, blobs, work, "thoughts")


@pytest.mark.parametrize("way", WAYS)
def test_a_seed_is_sent_and_moves_with_the_draw(way: str, blobs: Blobs):
    gives = declared(way)[1]

    async def work(one: Talk) -> None:
        await one.ask(user("draw"), want=Request("image" if gives.image else "text", draw=2))
        assert one.last.seed == 7

    if gives.seed or way.startswith("openai-images"):  # other servers of that API take one, and OpenAI's own does not
        talk(way, blobs, work, seed=5)
    else:
        with pytest.raises(UserError, match="unknown option 'seed'"):
            talk(way, blobs, work, seed=5)


@pytest.mark.parametrize("way", DRAWING)
def test_a_size_is_told_as_each_can_be_told(way: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        await one.ask(user("draw"), want=Request("image", size=(1536, 1024)))
        told = {"pixels": ("1536x1024", "1536*1024"), "ratio": ("3:2",), "words": ("",)}[declared(way)[1].sizes]
        assert one.last.size in told

    talk(way, blobs, work)


@pytest.mark.parametrize("way", WAYS)
def test_pictures_among_words_in_their_order(way: str, blobs: Blobs):
    takes, gives = declared(way)
    first, second = blobs.put(drawn("first")), blobs.put(drawn("second"))

    async def work(one: Talk) -> None:
        await one.ask(user("take ", first, "and", second, "please"), want=Request("image" if gives.image else "text"))
        flow = one.last.flow
        if takes.images == "interleaved":
            assert [word.strip() for word in flow] == ["take", first.digest, "and", second.digest, "please"]
        elif takes.max_images == 1:
            assert len(one.last.pictures) == 1 and "a row of image 1 and image 2" in "".join(flow)
        else:
            assert one.last.pictures == [first.digest, second.digest] and "take [image 1] and [image 2] please" in flow

    talk(way, blobs, work)


@pytest.mark.parametrize("way", [way for way in WAYS if (declared(way)[0].max_images or 99) <= 16])
def test_more_pictures_than_it_takes_go_in_one_row_that_is_told(way: str, blobs: Blobs):
    most = declared(way)[0].max_images or 0
    images = [blobs.put(drawn(str(number))) for number in range(most + 2)]

    async def work(one: Talk) -> None:
        await one.ask(user(*images, "which is the largest?"))
        seen = one.last.pictures
        assert (
            len(seen) == most
            and seen[1:] == [image.digest for image in images[3:]]
            and seen[0] not in [i.digest for i in images]
        )
        assert "a row of image 1, image 2 and image 3" in "".join(one.last.flow)

    talk(way, blobs, work)


@pytest.mark.parametrize("way", DRAWING)
def test_two_turns_with_its_own_picture_byte_for_byte(way: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        first = await one.ask(user("draw a cat"))
        assert first.last_image is not None
        second = await one.ask(user("draw a cat"), Message("assistant", first.parts), user("now with a hat"))
        assert second.outcome == "answered", second.reason
        assert one.last.pictures[-1] == hashlib.sha256(one.fake.seen[0].drawing).hexdigest() == first.last_image.digest
        assert any("now with a hat" in word for word in one.last.flow) and any(
            "draw a cat" in word for word in one.last.flow
        )

    talk(way, blobs, work)


@pytest.mark.parametrize("way", DRAWING)
def test_a_dialogue_that_it_never_had_is_sent_whole(way: str, blobs: Blobs):
    """A dataset's own answers in the model's place: nobody's state, and no turn of it lost."""
    shown = blobs.put(SMALL)

    async def work(one: Talk) -> None:
        past = (
            Message("system", (Text("be brief"),)),
            user("draw a cat"),
            Message("assistant", (Text("here:"), shown)),
        )
        reply = await one.ask(*past, user("now with a hat"))
        assert reply.outcome == "answered", reply.reason
        whole = "\n".join(
            [*one.last.flow, str(one.last.body.get("instructions")), str(one.last.body.get("systemInstruction"))]
        )
        assert all(words in whole for words in ("draw a cat", "here:", "now with a hat", "be brief"))
        assert one.last.pictures == [shown.digest]

    talk(way, blobs, work)


@pytest.mark.parametrize(
    "way", [way for way in WAYS if declared(way)[1].text and declared(way)[1].json and way != "vllm-omni"]
)
def test_a_judge_is_asked_with_its_schema(way: str, blobs: Blobs):
    properties = {"score": {"type": "integer"}, "reasoning": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["score", "reasoning"],
        "additionalProperties": False,
    }

    async def work(one: Talk) -> None:
        reply = await one.ask(user("how good is", blobs.put(SMALL)), want=Request("text", schema))
        assert reply.text.startswith('{"score": 5') and one.last.schema == schema

    talk(way, blobs, work)


# how each ends

ENDINGS = {
    "refused": ("refused", "refused"),
    "blocked": ("refused", "blocked"),
    "filtered": ("refused", "blocked"),
    "policy": ("refused", "blocked"),
    "cut": ("answered", "truncated"),
    "wordy": ("empty", "no image"),
    "nothing": ("empty", "no image"),
    "broken": ("empty", "no image"),
}
CHAT = ("refused", "blocked", "filtered", "cut", "nothing")
IMAGES = ("blocked", "nothing", "broken")
HOW = {
    "openai": CHAT, "sglang": CHAT, "openai-chat": (*CHAT, "wordy", "broken"), "openrouter": (*CHAT, "wordy", "broken"),
    "vllm-omni": ("blocked", "cut", "wordy", "nothing"), "openai-images": IMAGES, "openai-images, as JSON": IMAGES,
    "ark": (*IMAGES, "refused"), "xai": (*IMAGES, "refused"), "gemini": (*ENDINGS,), "anthropic": ("refused", "cut", "nothing"),
    "openai-responses": (*ENDINGS,), "openai-responses, stateless": (*ENDINGS,), "dashscope": IMAGES,
    "dashscope, as tasks": (*IMAGES, "refused"), "bfl": ("refused", "blocked", "broken"), "infer": ("wordy", "nothing"),
}  # fmt: skip
# a filter's doing, where no model could have refused; a service that leaves out without a word what it will not show
OTHERWISE = {
    **{(way, "refused"): ("refused", "blocked") for way in ("ark", "xai", "dashscope, as tasks", "bfl", "gemini")},
    ("xai", "nothing"): ("refused", "blocked"),
    ("anthropic", "cut"): ("failed", "truncated"),  # at a limit that is ours, where nobody gave one
}


@pytest.mark.parametrize(
    ("way", "says"),
    [(way, says) for way, all_of in HOW.items() for says in all_of if (way, says) != ("gemini", "policy")],
)
def test_how_a_reply_ends(way: str, says: str, blobs: Blobs):
    async def work(one: Talk) -> Reply:
        return await one.ask(user("draw a cat"), want=Request("image" if declared(way)[1].image else "text"))

    reply = talk(way, blobs, work, says)
    assert (reply.outcome, reply.finish_reason) == OTHERWISE.get((way, says), ENDINGS[says]) and (
        reply.reason or says == "cut"
    )


ERRORS = {
    "rate": "rate_limit",
    "quota": "fatal",
    "denied": "denied",
    "trouble": "transient",
    "error in 200": "",
    "no json": "transient",
}
RETRIES = {("anthropic", "trouble"): "rate_limit", ("gemini", "overloaded"): "rate_limit"}
ABSENT = {  # what these do not say
    *(("vllm-omni", says) for says in ("quota", "rate")),
    *(("infer", says) for says in ("quota", "denied")),
    *((way, "error in 200") for way in ("anthropic", "bfl")),
}


async def one_try(endpoint: Endpoint, messages: tuple[Message, ...], want: Request) -> EndpointReply:
    if not isinstance(endpoint, TaskEndpoint):
        return await endpoint.send(messages, want)
    ticket = await endpoint.submit(messages, want)
    while (sent := await endpoint.collect(ticket, want)) is None:
        pass
    return sent


@pytest.mark.parametrize(("way", "says"), [(way, says) for way in WAYS for says in ERRORS if (way, says) not in ABSENT])
def test_what_an_error_means_for_the_next_try(way: str, says: str, blobs: Blobs):
    async def work(one: Talk) -> CallError:
        with pytest.raises(CallError) as caught:
            await one_try(one.endpoint, (user("draw a cat"),), Request("image" if declared(way)[1].image else "text"))
        return caught.value

    error = talk(way, blobs, work, says)
    due = RETRIES.get((way, says), ERRORS[says])
    assert error.retry.kind == due if due else error.retry.kind in ("transient", "rate_limit")


@pytest.mark.parametrize("way", [way for way in WAYS if (way, "quota") not in ABSENT])
def test_a_quota_that_is_used_up_ends_the_run_at_once(way: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        with pytest.raises(EndpointDown):
            await one.ask(user("draw"), want=Request("image" if declared(way)[1].image else "text"))
        assert len(one.fake.seen) == 1

    talk(way, blobs, work, "quota")


@pytest.mark.parametrize("says", ["nothing", "other"])
def test_chance_is_given_another_try_and_that_is_counted(says: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        reply = await one.ask(user("draw"))
        (call,) = one.journal.calls(reply.keys).values()
        assert len(one.fake.seen) == call.attempts == QUICK.empty_tries

    talk("gemini", blobs, work, says)


@pytest.mark.parametrize("says", ["filtered", "refused", "wordy", "blocked"])
def test_what_was_turned_away_is_never_asked_again(says: str, blobs: Blobs):
    async def work(one: Talk) -> None:
        await one.ask(user("draw"))
        assert len(one.fake.seen) == 1

    talk("gemini", blobs, work, says)


# what is each one's own


def test_gemini_gets_its_signatures_back_and_drafts_are_thoughts(blobs: Blobs):
    async def work(one: Talk) -> None:
        first = await one.ask(user("draw"))
        drafts = [part for part in first.parts if isinstance(part, Thought)]
        assert [part.text for part in drafts] == ["let me see", "[a draft, 24 x 24]"]
        await one.ask(user("draw"), Message("assistant", first.parts), user("again"))
        model = one.last.body["contents"][1]["parts"]
        assert (
            [part["thoughtSignature"] for part in model]
            == [part.state.data for part in first.output if part.state]
            != ["", ""]
        )
        text, image = first.output
        edited = (Text("quite another"), image)
        reply = await one.ask(user("draw"), Message("assistant", edited), user("again"))
        assert (
            reply.outcome == "answered"
            and one.last.body["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
        )
        assert text.state is not None

    talk("gemini", blobs, work, "thoughts")


def test_responses_name_what_the_server_has_only_where_it_has_all_of_it(blobs: Blobs):
    async def work(one: Talk) -> None:
        drawing = await one.ask(user("Draw Image #1"))
        numbered = Message(
            "assistant",
            (
                Text("Image #1:"),
                *(replace(part, label=1) for part in drawing.output if isinstance(part, Image)),
                *drawing.parts[1:],
            ),
        )
        await one.ask(user("Draw Image #1"), numbered, user("put a hat on Image #1"))
        assert one.last.body["previous_response_id"] == "resp_1"
        assert [part["text"] for part in one.last.body["input"][0]["content"]] == [
            "(Your last picture is Image #1.)",
            "put a hat on Image #1",
        ]
        first = await one.ask(user("draw"))
        await one.ask(user("draw"), Message("assistant", first.parts), user("again"))
        assert one.last.body["previous_response_id"] == "resp_3" and len(one.last.body["input"]) == 1
        await one.ask(user("draw, but not so"), Message("assistant", first.parts), user("again"))
        assert "previous_response_id" not in one.last.body and len(one.last.body["input"]) == 3
        one.fake.kept.clear()  # type: ignore[attr-defined]
        reply = await one.ask(user("draw"), Message("assistant", first.parts), user("once more"))
        assert reply.outcome == "failed" and "history=stateless" in reply.reason

    talk("openai-responses", blobs, work)


def test_a_limit_that_the_user_gave_is_the_models_to_keep(blobs: Blobs):
    async def work(one: Talk) -> Reply:
        return await one.ask(user("write"), want=Request("text"))

    reply = talk("anthropic", blobs, work, "cut", max_tokens=20)
    assert (reply.outcome, reply.finish_reason) == ("answered", "truncated")


@pytest.mark.parametrize(
    ("code", "due"),
    [
        ("InputImageSensitiveContentDetected", "refused"), ("AccountOverdueError", "fatal"), ("QuotaExceeded", "fatal"),
        ("InvalidParameter", "no"), ("ModelNotOpen", "denied"), ("ServerBusy", "rate_limit"), ("RequestBurstTooFast", "rate_limit"),
        ("InternalServiceError", "transient"),
    ],
)  # fmt: skip
def test_an_error_in_a_pictures_place_is_a_zero_only_where_content_was_turned_away(code: str, due: str, blobs: Blobs):
    class Telling(FAKES["ark"]):  # type: ignore[misc]
        def data(self, asked: Asked) -> list[dict[str, Any]]:
            return [{"error": {"code": code, "message": "no"}}]

    async def work() -> str:
        async with Telling().up() as fake:
            endpoint = resolve_endpoint(fake.name, blobs)
            try:
                return (await endpoint.send((user("draw"),), Request("image"))).outcome
            except CallError as error:
                return error.retry.kind
            finally:
                await endpoint.close()

    assert asyncio.run(work()) == due


@pytest.mark.parametrize("kind", ["text", "interleaved", "image"])
def test_a_choice_that_ended_with_an_error_is_no_answer(kind: Any, blobs: Blobs):
    class Broken(FAKES["openrouter"]):  # type: ignore[misc]
        async def handle(self, request: web.Request) -> web.Response:
            await self.asked(request)
            error = {"code": 502, "message": "upstream died"}
            choice = {
                "index": 0,
                "finish_reason": "error",
                "error": error,
                "message": {"role": "assistant", "content": "Half of a sen"},
            }
            return reply_of({"id": "g", "model": "m", "choices": [choice]})

    async def work() -> None:
        async with Broken().up() as fake:
            endpoint = resolve_endpoint(fake.name, blobs)
            with pytest.raises(CallError, match="upstream died") as caught:
                await endpoint.send((user("write"),), Request(kind))
            assert caught.value.retry.kind == "transient"
            await endpoint.close()

    asyncio.run(work())


def test_the_sentence_of_a_server_that_drew_nothing_is_no_story(blobs: Blobs):
    async def work(one: Talk) -> None:
        reply = await one.ask(user("a story"), want=Request("interleaved"))
        assert (reply.outcome, reply.text, reply.reason) == ("empty", "", "it generated no image")

    talk("vllm-omni", blobs, work, "nothing")


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": []}])
def test_what_xai_leaves_out_without_a_word_was_turned_away(body: dict[str, Any], blobs: Blobs):
    class Silent(FAKES["xai"]):  # type: ignore[misc]
        async def handle(self, request: web.Request) -> web.Response:
            await self.asked(request)
            return reply_of(body)

    async def work() -> None:
        async with Silent().up() as fake:
            endpoint = resolve_endpoint(fake.name, blobs)
            sent = await endpoint.send((user("draw"),), Request("image"))
            assert (sent.outcome, sent.stop_cause) == ("refused", "blocked")
            await endpoint.close()

    asyncio.run(work())


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("infer", "xai")])
@pytest.mark.parametrize("body", [{"status": "ok"}, [], {"hello": 1}])
def test_json_that_is_nobodys_reply_is_no_zero(way: str, body: Any, blobs: Blobs):
    kind, usual = WAYS[way]

    @web.middleware
    async def other(request: web.Request, handler: Any) -> web.StreamResponse:
        return reply_of(body)

    async def work() -> None:
        fake = kind()
        fake.middlewares = [other]
        async with fake.up():
            endpoint = resolve_endpoint(fake.name, blobs, usual)
            with pytest.raises(CallError) as caught:
                await one_try(endpoint, (user("draw"),), Request("image" if declared(way)[1].image else "text"))
            assert caught.value.retry.kind == "transient"
            await endpoint.close()

    asyncio.run(work())


def test_a_reply_with_an_empty_code_is_no_error():
    assert parse_error({"code": "", "message": "", "output": {}}) == ("", "")
    assert parse_error({"code": "Throttling", "message": ""})[1] == "throttling"


def test_the_image_model_that_was_called_is_counted(blobs: Blobs):
    from weft.models.providers.openai_responses import _read_usage

    tokens = {"input_tokens": 50, "output_tokens": 20}
    used = _read_usage({"usage": tokens, "tool_usage": {"image_gen": {"input_tokens": 300, "output_tokens": 6240}}})
    assert (used.tokens_in, used.tokens_out) == (350, 6260)
    for provider in ("gemini", "openai-responses", "anthropic", "openai"):
        endpoint = resolve_endpoint(f"{provider}/m@http://127.0.0.1:9/v1", blobs, {"max_tokens": 60000})
        assert upper_bound((), Request("text"), endpoint.identity, 8192).tokens_out == 60000


def test_what_can_change_an_answer_is_in_the_key(blobs: Blobs):
    at = "@http://127.0.0.1:9/v1"
    different = [
        resolve_endpoint(f"openai-chat/m{at}", blobs), resolve_endpoint(f"openai/m{at}", blobs), resolve_endpoint(f"dashscope/m{at}", blobs),
        resolve_endpoint(f"dashscope/m{at}", blobs, {"mode": "task"}), resolve_endpoint(f"anthropic/m{at}", blobs),
        resolve_endpoint(f"anthropic/m{at}", blobs, {"max_tokens": 9}), resolve_endpoint(f"gemini/m{at}", blobs),
        resolve_endpoint(f"gemini/m{at}", blobs, {"safety": "OFF"}),
    ]  # fmt: skip
    assert len({msgspec.json.encode(one.identity, order="deterministic") for one in different}) == len(different)


def test_a_row_has_the_numbers_that_the_text_has(blobs: Blobs):
    pictures = [replace(blobs.put(drawn(str(number))), label=number) for number in (1, 3, 7)]
    parts = [part for picture in pictures for part in (Text(f"Image #{picture.label}:"), picture)]
    (message,) = adapt_messages(
        (Message("user", (*parts, Text("put the hat of Image #3 on Image #7"))),),
        Takes(images="list", max_images=2),
        blobs,
    )
    row, last, text = message.parts
    assert (
        isinstance(text, Text)
        and "a row of image 1 and image 3" in text.text
        and "the pictures after it are image 7" in text.text
    )
    assert isinstance(last, Image) and last.digest == pictures[2].digest and isinstance(row, Image)
    thinking = (user("a", *pictures), Message("assistant", (Thought("SECRET", State("s", "m")), Text("ok"))))
    assert "SECRET" not in str(adapt_messages(thinking, Takes(images="list", max_images=2), blobs))


def test_what_was_there_for_its_state_alone_is_for_nobody_else():
    said = Message("assistant", (Text("", State("x", "one")), Text("hello", State("y", "one"))))
    (other,) = strip_foreign_state((said,), "two")
    assert other.parts == (Text("hello"),) and strip_foreign_state((said,), "one") == (said,)


def test_a_task_of_bfl_sends_its_key_to_no_other_host(blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_API_KEY", "canary-bfl")

    async def work(one: Talk) -> None:
        assert isinstance(one.endpoint, TaskEndpoint)
        assert (await one.ask(user("draw"))).outcome == "answered"
        assert {headers.get("x-key") for headers in one.fake.polled} == {"canary-bfl"}  # type: ignore[attr-defined]
        with pytest.raises(CallError, match="another host"):
            await one.endpoint.collect("http://127.0.0.1:9/v1/get_result?id=1", Request("image"))
        far = resolve_endpoint("bfl/m", blobs)
        for place in (
            "http://api.bfl.ai/v1/x",
            "https://notbfl.ai/v1/x",
            "https://api.bfl.ai.evil.test/x",
            "https://x.test/.bfl.ai",
        ):
            with pytest.raises(CallError, match="another host"):
                await far.collect(place, Request("image"))  # type: ignore[attr-defined]

    talk("bfl", blobs, work)


@pytest.mark.parametrize("way", ["bfl", "dashscope, as tasks"])
def test_a_look_that_fails_is_no_second_task(way: str, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    """What is paid for is waited for: trouble while looking, also with the status 200, leaves the task as it is."""
    troubles = iter(
        [
            web.json_response({"error": {"message": "overloaded", "code": 503}}),
            web.Response(status=500),
            web.Response(text="<html>"),
        ]
    )

    @web.middleware
    async def troubled(request: web.Request, handler: Any) -> web.StreamResponse:
        trouble = next(troubles, None) if request.method == "GET" and "/files/" not in request.path else None
        return trouble if trouble is not None else await handler(request)

    async def work(one: Talk) -> None:
        assert (
            (await one.ask(user("draw"))).outcome == "answered"
            and len(one.fake.seen) == 1
            and next(troubles, None) is None
        )

    kind = WAYS[way][0]

    class Troubled(kind):  # type: ignore[misc, valid-type]
        def __init__(self, says: str = "ok") -> None:
            super().__init__(says)
            self.middlewares = [troubled]

    monkeypatch.setitem(WAYS, way, (Troubled, WAYS[way][1]))
    monkeypatch.setattr("test_matrix.QUICK", RetryPolicy(tries=6, base=0.001, cap=0.002))
    talk(way, blobs, work)


def test_the_matrix_in_the_documentation_is_the_one_that_weft_tells():
    from weft.cli.models import COLUMNS, build_provider_row

    page = (Path(__file__).parents[2] / "docs" / "how-to" / "providers.md").read_text()
    page = page.replace("`", "").replace("| none |", "| - |").lower()
    for name in (*FAKES, "hf", "diffusers", "served"):
        known = info_of(load_target(list_providers()[name][0]))
        assert known is not None
        row = [*build_provider_row(name, known), known.key or "-"]
        assert f"| {' | '.join(row)} |".lower() in page, name
    assert f"| {' | '.join([*COLUMNS, 'key'])} |".lower() in page


def test_a_ticket_with_the_key_in_it_is_not_kept(blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_API_KEY", "bfl-Zk93kd02LmQx81")

    class Echo(FAKES["bfl"]):  # type: ignore[misc]
        async def handle(self, request: web.Request) -> web.Response:
            await super().handle(request)
            return reply_of(
                {"id": "1", "polling_url": f"{self.url}/v1/get_result?id=1&auth={request.headers['x-key']}"}
            )

    async def work(one: Talk) -> None:
        reply = await one.ask(user("draw"))
        assert reply.outcome == "failed" and "sent a key back" in reply.reason and "Zk93" not in reply.reason
        one.journal.flush()
        assert not [path for path in blobs.root.rglob("*") if path.is_file() and b"Zk93kd02LmQx81" in path.read_bytes()]

    monkeypatch.setitem(WAYS, "bfl", (Echo, {}))
    talk("bfl", blobs, work)
