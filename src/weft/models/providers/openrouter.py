"""OpenRouter: chat completions with pictures in and out, and what OpenRouter has of its own.

A reply's pictures come apart from its words, so that their order among them is lost. A model's turn goes back with its
`images` and, where it had some, its `reasoning_details` untouched. Which provider serves a model changes from call to
call unless `pin` names one."""

from typing import Any

import msgspec
from msgspec.structs import replace

from weft.models.converters import comma_separated, one_of
from weft.models.endpoint import EndpointReply
from weft.models.providers.openai_chat import COMMON_OPTIONS, OpenAIChat, build_chat
from weft.models.providers.openai_reply import ReplyContent
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, State, Takes, Thought
from weft.untrusted import dict_or_empty

URL = "https://openrouter.ai/api/v1"
GIVES = Gives(ordered=False, thoughts=True, seed=True, sizes="ratio")


class OpenRouter(OpenAIChat):
    provider = "openrouter"

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        return {**super()._payload(messages, want), "usage": {"include": True}}

    def _message(self, message: Message) -> dict[str, Any]:
        made = super()._message(message)
        states = [part.state.data for part in message.parts if part.state is not None]
        if states and message.role == "assistant":
            return {**made, "reasoning_details": msgspec.json.decode(states[0])}
        return made

    def _read(self, got: ReplyContent, sent: EndpointReply, want: Request) -> EndpointReply:
        read = super()._read(got, sent, want)
        choice = dict_or_empty(next(iter(msgspec.json.decode(read.raw).get("choices") or ()), None))
        details = dict_or_empty(choice.get("message")).get("reasoning_details")
        said = next((at for at, part in enumerate(read.parts) if not isinstance(part, Thought)), None)
        if not details or said is None:
            return read
        kept = replace(read.parts[said], state=State(msgspec.json.encode(details).decode()))
        return replace(read, parts=(*read.parts[:said], kept, *read.parts[said + 1 :]))


@provider_info(Takes(), GIVES, url=URL)
@provider_options(
    **COMMON_OPTIONS,
    modalities=str,
    pin=comma_separated,
    own_images=one_of("images", "user"),
    sizes=one_of("words", "aspect_ratio"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    own_images = chosen.pop("own_images", "images")
    takes = Takes(own_images="user" if own_images == "user" else "assistant")
    if pinned := chosen.pop("pin", None):
        chosen["extra"] = {"provider": {"only": pinned, "allow_fallbacks": False}, **chosen.get("extra", {})}
    told = {"sizes": "aspect_ratio", **chosen}
    return build_chat(OpenRouter, spec, blobs, URL, told, takes, gives=GIVES, own_images=own_images)
