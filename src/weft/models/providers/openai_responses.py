"""OpenAI's Responses API with the image tool: a text model that thinks, writes and draws, in the order of its output.

What is measured is the text model together with the image model that it calls: it writes the image prompt itself. A
reply of text alone is the model's choice, and no error. Two ways to continue a dialogue (`history`):

    previous     the server keeps its own replies, with their reasoning; a request names the last one and has only what
                 follows it. Used where the dialogue so far is exactly what the server has; any other is sent whole.
    stateless    every request is whole; the model's earlier images go in user messages, byte for byte
"""

import hashlib
import itertools
import re
from typing import Any

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
from weft.models.providers.message_parts import list_system_texts, list_texts
from weft.models.providers.openai_reply import list_of_dicts, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, State, Takes, Text, Thought, Usage, outcome_of
from weft.untrusted import dict_or_empty

GIVES = Gives(thoughts=True, sizes="pixels")
CAPTION = re.compile(r"Image #\d+:?")
UNKNOWN_RESPONSE = "previous_response"  # in the error for a response id that the server does not have
STATUS_BY_CODE = {"rate_limit_exceeded": 429, "server_error": 500, "vector_store_timeout": 504}


class OpenAIResponses(HttpEndpoint):
    provider = "openai-responses"
    gives = GIVES

    def __init__(self, model: str, url: str, blobs: Blobs, *, history: str, tool: dict[str, Any], **more: Any) -> None:
        """`tool` are the image tool's own settings."""
        self._history = history
        self._tool = {"type": "image_generation", **tool}
        self.takes = Takes(own_images="assistant" if history == "previous" else "user")
        super().__init__(model, url, blobs, tool=tool, history=history, **more)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        payload = self._payload(messages, request)
        limit = MAX_REPLY_BYTES
        if request.modality == "text":
            limit = MAX_TEXT_BYTES
        async with self._post("/responses", payload, limit) as response:
            error = response.error_message
            is_unknown = UNKNOWN_RESPONSE in error.lower().replace(" ", "_")
            if is_unknown and response.status in (400, 404) and "previous_response_id" in payload:
                explanation = self._explain(response.status, error)
                raise CallError(f"{explanation}; history=stateless does without it", NO_RETRY)
            is_incomplete = dict_or_empty(response.body).get("status") == "incomplete"
            if response.status >= 400 or (error and not is_incomplete):
                return self._read_failure(_add_refusal_code(response))
            return await self._read(response.body, messages, request)

    # the request

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, "store": self._history == "previous", **self._parameters}
        if self.max_reply_tokens is not None and "max_output_tokens" not in payload:
            payload["max_output_tokens"] = self.max_reply_tokens
        if request.modality != "text":
            tool = dict(self._tool)
            if request.size is not None and "size" not in tool:
                tool["size"] = f"{request.size[0]}x{request.size[1]}"
            payload["tools"] = [tool]
            payload["tool_choice"] = "auto"
            if request.modality == "image":
                payload["tool_choice"] = {"type": "image_generation"}
        if request.schema is not None:
            format = {"type": "json_schema", "name": "verdict", "strict": True, "schema": request.schema}
            payload["text"] = {"format": format}
        previous_id, rest = self._find_previous(messages)
        if previous_id:
            payload["previous_response_id"] = previous_id
        system = "\n".join(list_system_texts(messages))
        if system:
            payload["instructions"] = system
        payload["input"] = [_build_item(message) for message in move_own_images(rest) if message.role != "system"]
        return payload

    def _find_previous(self, messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
        """Return the id of the last reply that the server has with all that led to it, and the messages after it."""
        if self._history != "previous":
            return "", messages
        for index in reversed(range(len(messages))):
            message = messages[index]
            states = [part.state.data for part in message.parts if part.state is not None]
            if message.role != "assistant" or not states:
                continue
            response_id, _, digest = states[0].partition(" ")
            if response_id and digest == _digest_dialogue(messages[: index + 1]):
                return response_id, _announce_image_numbers(message, messages[index + 1 :])
        return "", messages

    # the reply

    async def _read(self, body: Any, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        answer = dict_or_empty(body)
        if not isinstance(answer.get("output"), list):
            raise CallError(f"{self.address} answered 200 without `output`", TRANSIENT)
        parts, refusal, image_error = await self._read_parts(list_of_dicts(answer["output"]))
        raw = msgspec.json.encode(body).decode()
        served = str(answer.get("model") or self._model)
        reply = EndpointReply(parts, "empty", "", raw, served, _read_usage(answer))
        incomplete_reason = ""
        if answer.get("status") == "incomplete":
            incomplete_reason = str(dict_or_empty(answer.get("incomplete_details")).get("reason") or "")
        if refusal:
            return replace(reply, outcome="refused", reason=refusal)
        if incomplete_reason == "content_filter":
            return replace(reply, outcome="refused", reason="stopped by the content filter", stop_cause="blocked")
        truncated = incomplete_reason == "max_output_tokens"
        if truncated and self.max_reply_tokens is not None and "max_output_tokens" not in self._parameters:
            reason = (
                f"the reply was truncated at {self.max_reply_tokens} tokens, the limit of --budget: give max_tokens"
            )
            return replace(reply, parts=(), outcome="failed", reason=reason, stop_cause="truncated")
        outcome, reason = outcome_of(parts, request.modality)
        if outcome == "empty" and image_error:
            return replace(reply, reason=f"its image {image_error}", retry_advised=True)
        if not image_error:  # with a broken image, the dialogue is not what the server has
            parts = self._add_state(parts, str(answer.get("id") or ""), messages)
        if truncated:
            reason = reason or "the reply was truncated at the token limit"
            return replace(reply, parts=parts, outcome=outcome, reason=reason, stop_cause="truncated")
        only_thoughts = all(isinstance(part, Thought) for part in parts)
        retry_advised = outcome == "empty" and only_thoughts
        return replace(reply, parts=parts, outcome=outcome, reason=reason, retry_advised=retry_advised)

    def _add_state(self, parts: tuple[Part, ...], response_id: str, messages: tuple[Message, ...]) -> tuple[Part, ...]:
        """Give the first output part a state: the server's id of the reply, and a digest of the dialogue so far."""
        output = tuple(part for part in parts if not isinstance(part, Thought))
        if not output or not response_id or self._history != "previous":
            return parts
        state = State(f"{response_id} {_digest_dialogue((*messages, Message('assistant', output)))}")
        first = parts.index(output[0])
        return (*parts[:first], replace(output[0], state=state), *parts[first + 1 :])

    async def _read_parts(self, output: list[dict[str, Any]]) -> tuple[tuple[Part, ...], str, str]:
        """Return the parts in order, the text of a refusal, and why an image is unusable.

        Changes `output`: image data becomes `blob:DIGEST`.
        """
        parts: list[Part] = []
        refusal = ""
        image_error = ""
        for item in output:
            if item.get("type") == "reasoning":
                parts += [Thought(text) for text in _list_block_texts(item.get("summary"))]
                continue
            for block in list_of_dicts(item.get("content")):
                if block.get("type") == "refusal":
                    refusal = str(block.get("refusal") or "the model refused")
                elif block.get("type") == "output_text":
                    parts += [Text(text) for text in _list_block_texts([block])]
            data = item.get("result")
            if item.get("type") == "image_generation_call" and isinstance(data, str) and data:
                try:
                    image = await self._decode_image(data)
                except ImageError as error:
                    image_error = str(error)
                    item["result"] = "(an image that cannot be used)"
                    continue
                item["result"] = f"blob:{image.digest}"
                parts.append(image)
        return tuple(parts), refusal, image_error

    def _read_failure(self, response: HttpResponse) -> EndpointReply:
        """Read an error like any other, but for those with status 200: their code says what the HTTP status would."""
        codes = response.error_codes
        if dict_or_empty(response.body).get("status") != "failed" or is_refusal(codes):
            return self._read_error(response)
        retry = Retry("no")
        for code, status in STATUS_BY_CODE.items():
            if code in codes:
                retry = retry_decision(status, codes, response.headers, response.body)
                break
        raise CallError(self._explain(response.status, response.error_message), retry, billed=True)


def _add_refusal_code(response: HttpResponse) -> HttpResponse:
    """Mark the API's own code for refused content, `invalid_prompt`, as a refusal."""
    if "invalid_prompt" not in response.error_codes:
        return response
    return replace(response, error_codes=f"{response.error_codes} content_policy_violation")


def _list_block_texts(blocks: Any) -> list[str]:
    texts = [block.get("text") for block in list_of_dicts(blocks)]
    return [text for text in texts if isinstance(text, str) and text]


def _build_item(message: Message) -> dict[str, Any]:
    """Build a turn of the dialogue. The model's own go as plain text, which needs no id of the server's."""
    if message.role == "assistant":
        return {"type": "message", "role": "assistant", "content": "\n".join(list_texts([message]))}
    content = [_build_part(part) for part in message.parts if not isinstance(part, Thought)]
    return {"type": "message", "role": message.role, "content": content}


def _build_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part, "detail": "auto"}
    return {"type": "input_text", "text": part.text}


def _read_usage(answer: dict[str, Any]) -> Usage:
    """Add the tokens of the text model and, where they are reported, those of the image model that it called; and count
    the images that came, usable or not.
    """
    text_usage = read_usage(answer)
    image_usage = read_usage({"usage": dict_or_empty(answer.get("tool_usage")).get("image_gen")})
    tokens_in = text_usage.tokens_in + image_usage.tokens_in
    tokens_out = text_usage.tokens_out + image_usage.tokens_out
    output = list_of_dicts(answer.get("output"))
    images = sum(item.get("type") == "image_generation_call" and bool(item.get("result")) for item in output)
    return Usage(tokens_in, tokens_out, text_usage.cost, images)


def _find_captions(message: Message) -> list[Text]:
    """Return the captions that weft put right before the model's own images (`Image #3:`)."""
    captions: list[Text] = []
    if message.role != "assistant":
        return captions
    for part, following in itertools.pairwise(message.parts):
        if isinstance(part, Text) and isinstance(following, Image) and CAPTION.fullmatch(part.text.strip()):
            captions.append(part)
    return captions


def _announce_image_numbers(reply: Message, rest: tuple[Message, ...]) -> tuple[Message, ...]:
    """Add a note to the next user message with the numbers that the images of `reply` got since the server sent it."""
    numbers = [caption.text.strip().rstrip(":") for caption in _find_captions(reply)]
    if not numbers:
        return rest
    verb = "s are" if len(numbers) > 1 else " is"
    note = Text(f"(Your last picture{verb} {' and '.join(numbers)}.)")
    for index, message in enumerate(rest):
        if message.role == "user":
            return (*rest[:index], Message("user", (note, *message.parts)), *rest[index + 1 :])
    return rest


def _digest_dialogue(messages: tuple[Message, ...]) -> str:
    """Digest who said and showed what. Thoughts, and captions that weft added to the model's turns, do not count."""
    dialogue: list[Any] = []
    for message in messages:
        captions = [id(part) for part in _find_captions(message)]
        contents: list[str] = []
        for part in message.parts:
            if isinstance(part, Image):
                contents.append(part.digest)
            elif isinstance(part, Text) and id(part) not in captions:
                contents.append(part.text)
        dialogue.append((message.role, contents))
    return hashlib.sha256(msgspec.json.encode(dialogue)).hexdigest()[:32]


TOOL_OPTIONS = ("size", "quality", "background", "output_format", "moderation", "input_fidelity", "action")


@provider_info(Takes(own_images="assistant"), GIVES, url=OPENAI_URL)
@provider_options(
    **dict.fromkeys(("temperature", "top_p"), finite_number),
    **dict.fromkeys(("max_tokens", "output_compression"), int),
    **HTTP_OPTIONS,
    **dict.fromkeys(("image_model", "reasoning_effort", *TOOL_OPTIONS), str),
    history=one_of("previous", "stateless"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIResponses:
    """Build the endpoint of `openai-responses/NAME` or `openai-responses/NAME@URL`."""
    url = url_of(spec)
    history = chosen.pop("history", "previous")
    tool: dict[str, Any] = {}
    if "image_model" in chosen:
        tool["model"] = chosen.pop("image_model")
    tool |= {name: chosen.pop(name) for name in (*TOOL_OPTIONS, "output_compression") if name in chosen}
    parameters: dict[str, Any] = {**chosen.pop("extra", {})}
    parameters |= {name: chosen.pop(name) for name in ("temperature", "top_p") if name in chosen}
    if "max_tokens" in chosen:
        parameters["max_output_tokens"] = chosen.pop("max_tokens")
    if "reasoning_effort" in chosen:
        parameters["reasoning"] = {"effort": chosen.pop("reasoning_effort")}
    key = key_for(url, chosen.pop("key_env", ""))
    return OpenAIResponses(spec.model, url, blobs, key=key, history=history, tool=tool, parameters=parameters, **chosen)
