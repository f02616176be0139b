"""vLLM-Omni's chat, which uses less of a request than it is sent: of image requests only the user's texts and pictures,
of the pictures of most models only the first, and nothing of system and assistant turns.

So a dialogue goes as one message of the user's in which nothing is missing: every turn under its role, the model's own
pictures among the rest, all in one numbered row where the model takes one picture (`most_images` says how many it
takes). A seed is always sent, since the server has a fixed one of its own."""

from typing import Any

from msgspec.structs import replace

from weft.models.endpoint import EndpointReply
from weft.models.providers.openai_chat import COMMON_OPTIONS, OpenAIChat, build_chat
from weft.models.providers.openai_reply import ReplyContent
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

NOTHING = "Image generation completed but no images were produced"
TAKES = Takes(images="list", own_images="user", max_images=1)
GIVES = Gives(interleaved=False, ordered=False, thoughts=True, seed=True, sizes="pixels")


class VllmOmni(OpenAIChat):
    provider = "vllm-omni"

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        payload = {"seed": want.draw, **super()._payload(messages, want)}
        return {**payload, "modalities": ["text" if want.modality == "text" else "image"]}

    async def _taken(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        got, sent = await super()._taken(body)
        thought = dict_or_empty(dict_or_empty(body).get("metrics")).get("think_text")
        if isinstance(thought, str) and thought.strip():
            got = replace(got, parts=(Thought(thought.strip()), *got.parts))
        return got, sent

    def _read(self, got: ReplyContent, sent: EndpointReply, want: Request) -> EndpointReply:
        read = super()._read(got, sent, want)
        said = "".join(part.text for part in got.parts if isinstance(part, Text))
        if want.modality != "text" and said.strip().startswith(NOTHING):  # the server's sentence, and nobody's answer
            return replace(read, parts=(), outcome="empty", reason="it drew no picture", retry_advised=True)
        return read


@provider_info(TAKES, GIVES, address=True)
@provider_options(**COMMON_OPTIONS)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    return build_chat(VllmOmni, spec, blobs, "", chosen, TAKES, gives=GIVES, sizes="size", modalities="none")
