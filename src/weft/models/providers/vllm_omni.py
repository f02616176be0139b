"""vLLM-Omni's chat, which ignores much of a request.

For image output the server uses only the user's texts and images, for most models only the first image, and nothing of
system and assistant turns. So a dialogue goes as one user message in which nothing is missing: every turn under its
role, the model's own images among the rest, and all images in one numbered strip where the model takes a single image
(`most_images` says how many it takes). A seed is always sent, since the server has a fixed one of its own.
"""

from typing import Any

from msgspec.structs import replace

from weft.models.endpoint import EndpointReply
from weft.models.providers.openai_chat import COMMON_OPTIONS, OpenAIChat, build_chat
from weft.models.providers.openai_reply import ReplyContent
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

NO_IMAGE_MESSAGE = "Image generation completed but no images were produced"
TAKES = Takes(images="list", own_images="user", max_images=1)
GIVES = Gives(interleaved=False, ordered=False, thoughts=True, seed=True, sizes="pixels")


class VllmOmni(OpenAIChat):
    provider = "vllm-omni"

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        modality = "image"
        if request.modality == "text":
            modality = "text"
        return {"seed": request.draw, **super()._payload(messages, request), "modalities": [modality]}

    async def _read_body(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        content, reply = await super()._read_body(body)
        thought = dict_or_empty(dict_or_empty(body).get("metrics")).get("think_text")
        if isinstance(thought, str) and thought.strip():
            content = replace(content, parts=(Thought(thought.strip()), *content.parts))
        return content, reply

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, request: Request) -> EndpointReply:
        reply = super()._build_reply(content, reply, request)
        text = "".join(part.text for part in content.parts if isinstance(part, Text))
        # the server's own message, not the model's text
        if request.modality != "text" and text.strip().startswith(NO_IMAGE_MESSAGE):
            return replace(reply, parts=(), outcome="empty", reason="it generated no image", retry_advised=True)
        return reply


@provider_info(TAKES, GIVES, address=True)
@provider_options(**COMMON_OPTIONS)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the endpoint of `vllm-omni/NAME@URL`."""
    return build_chat(VllmOmni, spec, blobs, "", chosen, TAKES, gives=GIVES, sizes="size", modalities="none")
