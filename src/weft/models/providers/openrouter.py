"""OpenRouter: chat completions with images in and out, and OpenRouter's own fields.

A reply's images come apart from its text, so that their order is lost. A model's turn goes back with its `images` and,
where it had some, its `reasoning_details` untouched. Which provider serves a model changes from call to call unless
`pin` names one.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from weft.models.converters import comma_separated, one_of
from weft.models.endpoint import EndpointReply
from weft.models.providers.openai_chat import COMMON_OPTIONS, OpenAIChat, build_chat
from weft.models.providers.openai_reply import ReplyContent, first_choice
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, State, Takes, Thought
from weft.untrusted import dict_or_empty

URL = "https://openrouter.ai/api/v1"
GIVES = Gives(ordered=False, thoughts=True, seed=True, sizes="ratio")


class OpenRouter(OpenAIChat):
    provider = "openrouter"

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        return {**super()._payload(messages, request), "usage": {"include": True}}

    def _build_message(self, message: Message) -> dict[str, Any]:
        built = super()._build_message(message)
        states = [part.state.data for part in message.parts if part.state is not None]
        if states and message.role == "assistant":
            built["reasoning_details"] = msgspec.json.decode(states[0])
        return built

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, request: Request) -> EndpointReply:
        """Keep `reasoning_details` as the state of the first part that is no thought."""
        reply = super()._build_reply(content, reply, request)
        choice = first_choice(msgspec.json.decode(reply.raw))
        details = dict_or_empty(choice.get("message")).get("reasoning_details")
        if not details:
            return reply
        parts = list(reply.parts)
        for index, part in enumerate(parts):
            if not isinstance(part, Thought):
                parts[index] = replace(part, state=State(msgspec.json.encode(details).decode()))
                break
        return replace(reply, parts=tuple(parts))


@provider_info(Takes(), GIVES, url=URL)
@provider_options(
    **COMMON_OPTIONS,
    modalities=str,
    pin=comma_separated,
    own_images=one_of("images", "user"),
    sizes=one_of("words", "aspect_ratio"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the endpoint of `openrouter/NAME` or `openrouter/NAME@URL`."""
    own_images = chosen.pop("own_images", "images")
    takes = Takes(own_images="user" if own_images == "user" else "assistant")
    pinned = chosen.pop("pin", None)
    if pinned:
        chosen["extra"] = {"provider": {"only": pinned, "allow_fallbacks": False}, **chosen.get("extra", {})}
    arguments = {"sizes": "aspect_ratio", **chosen}
    return build_chat(OpenRouter, spec, blobs, URL, arguments, takes, gives=GIVES, own_images=own_images)
