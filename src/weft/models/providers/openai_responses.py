"""OpenAI's Responses with the image tool: a text model that thinks, speaks and draws, in the order of its output.

What is measured is the text model together with the image model that it calls: it writes the prompt itself. A reply in
words alone is what it chose to say, and no error. Two ways to go on with a dialogue (`history`):

    previous     the server keeps its own replies, with their reasoning: a request names the last one and has only what
    follows it. That is
                 done where the dialogue so far is word for word what the server has seen and said; any other is sent
                 whole
    stateless    every request is whole; the model's earlier pictures stand in the user's messages, byte for byte
"""

import hashlib
import itertools
import re
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.adapt import move_own_images
from weft.models.converters import finite_number, one_of
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply, Retry
from weft.models.http import MAX_REPLY_BYTES, MAX_TEXT_BYTES, HttpResponse
from weft.models.http_endpoint import (
    HTTP_OPTIONS,
    OPENAI_URL,
    HttpEndpoint,
    is_refusal,
    key_for,
    retry_decision,
    url_of,
)
from weft.models.providers.openai_reply import read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, State, Takes, Text, Thought, Usage, outcome_of
from weft.untrusted import dict_or_empty

GIVES = Gives(thoughts=True, sizes="pixels")
CAPTION = re.compile(r"Image #\d+:?")
FORGOTTEN = "previous_response"
CODES = {"rate_limit_exceeded": 429, "server_error": 500, "vector_store_timeout": 504}


class OpenAIResponses(HttpEndpoint):
    provider = "openai-responses"
    gives = GIVES

    def __init__(self, model: str, url: str, blobs: Blobs, *, history: str, tool: dict[str, Any], **more: Any) -> None:
        """`tool` are the image tool's own settings."""
        self._history = history
        self._tool = {"type": "image_generation", **tool}
        self.takes = Takes(own_images="assistant" if history == "previous" else "user")
        super().__init__(model, url, blobs, tool=tool, history=history, **more)

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        payload = self._payload(messages, want)
        if want.modality == "text":
            most = MAX_TEXT_BYTES
        else:
            most = MAX_REPLY_BYTES
        async with self._post("/responses", payload, most) as came:
            if (
                came.status in (400, 404)
                and "previous_response_id" in payload
                and FORGOTTEN in came.error_message.lower().replace(" ", "_")
            ):
                raise CallError(
                    f"{self._explain(came.status, came.error_message)}; history=stateless does without it", NO_RETRY
                )
            status = dict_or_empty(came.body).get("status")
            if came.status >= 400 or (came.error_message and status != "incomplete"):
                return self._read_error(_coded(came))
            return await self._read(came.body, messages, want)

    # the request

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, "store": self._history == "previous", **self._parameters}
        if self.max_reply_tokens is not None and "max_output_tokens" not in payload:
            payload["max_output_tokens"] = self.max_reply_tokens
        if want.modality != "text":
            size = (
                {"size": f"{want.size[0]}x{want.size[1]}"} if want.size is not None and "size" not in self._tool else {}
            )
            payload["tools"] = [{**self._tool, **size}]
            if want.modality == "image":
                payload["tool_choice"] = {"type": "image_generation"}
            else:
                payload["tool_choice"] = "auto"
        if want.schema is not None:
            payload["text"] = {
                "format": {"type": "json_schema", "name": "verdict", "strict": True, "schema": want.schema}
            }
        before, rest = self._known(messages)
        payload |= {"previous_response_id": before} if before else {}
        system = "\n".join(
            part.text for m in messages if m.role == "system" for part in m.parts if isinstance(part, Text)
        )
        payload |= {"instructions": system} if system else {}
        payload["input"] = [_item(m) for m in move_own_images(rest) if m.role != "system"]
        return payload

    def _known(self, messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
        """The last reply that the server has with all that led to it, and what it has not seen."""
        for at in range(len(messages) - 1, -1, -1) if self._history == "previous" else ():
            states = [part.state.data for part in messages[at].parts if part.state is not None]
            said, _, seen = states[0].partition(" ") if states and messages[at].role == "assistant" else ("", "", "")
            if said and seen == _digest(messages[: at + 1]):
                return said, _told_numbers(messages[at], messages[at + 1 :])
        return "", messages

    # the reply

    async def _read(self, body: Any, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        answer = dict_or_empty(body)
        output: Any = answer.get("output")
        if not isinstance(output, list):
            raise CallError(f"{self.address} answered 200 without `output`", TRANSIENT)
        parts, refusal, broken = await self._parts([dict_or_empty(one) for one in cast(list[Any], output)])
        raw = msgspec.json.encode(body).decode()
        served = str(answer.get("model") or self._model)
        sent = EndpointReply(parts, "empty", "", raw, served, _used(answer))
        if answer.get("status") == "incomplete":
            why = str(dict_or_empty(answer.get("incomplete_details")).get("reason") or "")
        else:
            why = ""
        if refusal or why == "content_filter":
            return replace(
                sent,
                outcome="refused",
                reason=refusal or "stopped by the content filter",
                stop_cause="" if refusal else "blocked",
            )
        cut = why == "max_output_tokens"
        if cut and self.max_reply_tokens is not None and "max_output_tokens" not in self._parameters:
            why = f"the reply was cut at {self.max_reply_tokens} tokens, the limit that --budget sets where there is none: give max_tokens"
            return replace(sent, parts=(), outcome="failed", reason=why, stop_cause="truncated")
        outcome, reason = outcome_of(parts, want.modality)
        if outcome == "empty" and broken:
            return replace(sent, reason=f"its picture {broken}", retry_advised=True)
        # what nobody sees the server has
        if not broken:
            kept = self._kept(parts, str(answer.get("id") or ""), messages)
        else:
            kept = parts
        reason = reason or ("the reply was cut at the token limit" if cut else "")
        silent = outcome == "empty" and all(isinstance(part, Thought) for part in parts) and not cut
        return replace(
            sent,
            parts=kept,
            outcome=outcome,
            reason=reason,
            retry_advised=silent,
            stop_cause="truncated" if cut else "",
        )

    def _kept(self, parts: tuple[Part, ...], name: str, messages: tuple[Message, ...]) -> tuple[Part, ...]:
        """What it said, with where the server has it: its name, and a digest of the dialogue that it ends."""
        said = tuple(part for part in parts if not isinstance(part, Thought))
        if not said or not name or self._history != "previous":
            return parts
        state = State(f"{name} {_digest((*messages, Message('assistant', said)))}")
        first = parts.index(said[0])
        return (*parts[:first], replace(said[0], state=state), *parts[first + 1 :])

    async def _parts(self, output: list[dict[str, Any]]) -> tuple[tuple[Part, ...], str, str]:
        """In their order; a refusal in words; why a picture is unusable. Changes `output`: a picture's data becomes
        `blob:DIGEST`."""
        parts: list[Part] = []
        refusal = broken = ""
        for item in output:
            if item.get("type") == "reasoning":
                contents: Any = item.get("summary")
            else:
                contents = item.get("content")
            for one in map(dict_or_empty, cast(list[Any], contents) if isinstance(contents, list) else []):
                if item.get("type") == "reasoning" and isinstance(one.get("text"), str) and one["text"]:
                    parts.append(Thought(one["text"]))
                elif one.get("type") == "output_text" and isinstance(one.get("text"), str) and one["text"]:
                    parts.append(Text(one["text"]))
                elif one.get("type") == "refusal":
                    refusal = str(one.get("refusal") or "the model refused")
            if item.get("type") == "image_generation_call" and isinstance(item.get("result"), str) and item["result"]:
                try:
                    image = await self._decode_image(item["result"])
                except ImageError as error:
                    broken, item["result"] = str(error), "(a picture that cannot be used)"
                    continue
                item["result"] = f"blob:{image.digest}"
                parts.append(image)
        return tuple(parts), refusal, broken

    def _read_error(self, came: HttpResponse) -> EndpointReply:
        if dict_or_empty(came.body).get("status") == "failed" and not is_refusal(came.error_codes):  # with 200
            status = next((status for code, status in CODES.items() if code in came.error_codes), 0)
            if status:
                retry = retry_decision(status, came.error_codes, came.headers, came.body)
            else:
                retry = Retry("no")
            raise CallError(self._explain(came.status, came.error_message), retry, billed=True)
        return super()._read_error(came)


def _coded(came: HttpResponse) -> HttpResponse:
    """A picture or a prompt that is turned away has a code of its own here."""
    turned_away = "invalid_prompt" in came.error_codes
    if turned_away:
        return replace(came, error_codes=f"{came.error_codes} content_policy_violation")
    return came


def _item(message: Message) -> dict[str, Any]:
    """A turn of the dialogue; what the model said goes as a plain text, which needs no name of the server's."""
    if message.role == "assistant":
        said = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        return {"type": "message", "role": "assistant", "content": said}
    shown = [part for part in message.parts if not isinstance(part, Thought)]
    content = [_shown(part) if isinstance(part, Image) else {"type": "input_text", "text": part.text} for part in shown]
    return {"type": "message", "role": message.role, "content": content}


def _shown(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": image, "detail": "auto"}


def _used(answer: dict[str, Any]) -> Usage:
    """The text model's tokens and, where they are told, those of the image model that it called."""
    words = read_usage(answer)
    drawing = read_usage({"usage": dict_or_empty(answer.get("tool_usage")).get("image_gen")})
    return Usage(words.tokens_in + drawing.tokens_in, words.tokens_out + drawing.tokens_out, words.cost)


def _captions(message: Message) -> list[Part]:
    """The numbers that weft gave to pictures of the model's own: each stands right before its picture."""
    if message.role == "assistant":
        pairs = itertools.pairwise(message.parts)
    else:
        pairs = ()
    return [
        one
        for one, other in pairs
        if isinstance(one, Text) and isinstance(other, Image) and CAPTION.fullmatch(one.text.strip())
    ]


def _told_numbers(known: Message, rest: tuple[Message, ...]) -> tuple[Message, ...]:
    """What the server has not seen: with the numbers that its own pictures have had since."""
    numbers = [part.text.strip().rstrip(":") for part in _captions(known) if isinstance(part, Text)]
    first = next((at for at, message in enumerate(rest) if message.role == "user"), None)
    if not numbers or first is None:
        return rest
    note = Text(f"(Your last picture{'s are' if len(numbers) > 1 else ' is'} {' and '.join(numbers)}.)")
    return (*rest[:first], Message("user", (note, *rest[first].parts)), *rest[first + 1 :])


def _digest(messages: tuple[Message, ...]) -> str:
    """Of what was said and shown, by whom; the numbers that pictures of its own have got meanwhile are not its
    words."""
    told: list[Any] = []
    for message in messages:
        numbers = [id(part) for part in _captions(message)]
        shown = [part for part in message.parts if id(part) not in numbers]
        said = [
            part.digest if isinstance(part, Image) else part.text for part in shown if not isinstance(part, Thought)
        ]
        told.append((message.role, said))
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:32]


TOOL = ("size", "quality", "background", "output_format", "moderation", "input_fidelity", "action")


@provider_info(Takes(own_images="assistant"), GIVES, url=OPENAI_URL)
@provider_options(
    **dict.fromkeys(("temperature", "top_p"), finite_number),
    **dict.fromkeys(("max_tokens", "output_compression"), int),
    **HTTP_OPTIONS,
    **dict.fromkeys(("image_model", "reasoning_effort", *TOOL), str),
    history=one_of("previous", "stateless"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIResponses:
    url = url_of(spec)
    history = chosen.pop("history", "previous")
    named = {"image_model": "model", **{name: name for name in (*TOOL, "output_compression")}}
    tool = {told: chosen.pop(name) for name, told in named.items() if name in chosen}
    parameters = {
        **chosen.pop("extra", {}),
        **{name: chosen.pop(name) for name in ("temperature", "top_p") if name in chosen},
    }
    parameters |= {"max_output_tokens": chosen.pop("max_tokens")} if "max_tokens" in chosen else {}
    parameters |= {"reasoning": {"effort": chosen.pop("reasoning_effort")}} if "reasoning_effort" in chosen else {}
    key = key_for(url, chosen.pop("key_env", ""))
    return OpenAIResponses(spec.model, url, blobs, key=key, history=history, tool=tool, parameters=parameters, **chosen)
