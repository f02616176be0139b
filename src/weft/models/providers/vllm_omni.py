"""vLLM-Omni's chat, which uses less of a request than it is sent: of image requests only the user's texts and pictures, of the pictures of
most models only the first, and nothing of system and assistant turns.

So a dialogue goes as one message of the user's in which nothing is missing: every turn under its role, the model's own pictures among the
rest, all in one numbered row where the model takes one picture (`most_images` says how many it takes). A seed is always sent, since the
server has a fixed one of its own."""

from typing import Any

from msgspec.structs import replace

from weft.models.endpoint import Sent
from weft.models.providers.openai_chat import COMMON, OpenAIChat, chat
from weft.models.providers.openai_reply import Unpacked
from weft.models.registry import ModelSpec, about, options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Takes, Text, Thought, Want
from weft.untrusted import fields

NOTHING = "Image generation completed but no images were produced"
TAKES = Takes(images="list", own_images="user", most=1)
GIVES = Gives(both=False, order=False, thoughts=True, seed=True, sizes="pixels")


class VllmOmni(OpenAIChat):
    provider = "vllm-omni"

    def _payload(self, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        payload = {"seed": want.draw, **super()._payload(messages, want)}
        return {**payload, "modalities": ["text" if want.kind == "text" else "image"]}

    async def _taken(self, body: Any) -> tuple[Unpacked, Sent]:
        got, sent = await super()._taken(body)
        thought = fields(fields(body).get("metrics")).get("think_text")
        if isinstance(thought, str) and thought.strip():
            got = replace(got, parts=(Thought(thought.strip()), *got.parts))
        return got, sent

    def _read(self, got: Unpacked, sent: Sent, want: Want) -> Sent:
        read = super()._read(got, sent, want)
        said = "".join(part.text for part in got.parts if isinstance(part, Text))
        if want.kind != "text" and said.strip().startswith(NOTHING):  # the server's sentence, and nobody's answer
            return replace(read, parts=(), outcome="empty", reason="it drew no picture", again=True)
        return read


@about(TAKES, GIVES, address=True)
@options(**COMMON)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    return chat(VllmOmni, spec, blobs, "", chosen, TAKES, gives=GIVES, sizes="size", modalities="none")
