"""The judge `logprobs/NAME@URL`: how likely a model is to begin its answer with a word, where its server gives
log-probabilities (vLLM, SGLang, OpenAI).

It answers questions for which words are not enough (`weft.judges.tokens`), one token each. A server that gives no
log-probabilities is refused before the run.

    weft run geneval2 --data DIR --model MODEL --judge logprobs/Qwen/Qwen3-VL-8B-Instruct@http://127.0.0.1:8000/v1
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from weft.judges.tokens import Token, list_entries, write_tokens
from weft.models.converters import positive_int
from weft.models.endpoint import FATAL, NO_RETRY, TRANSIENT, CallError, EndpointReply
from weft.models.http_endpoint import OPENAI_URL, from_options, url_of
from weft.models.providers.openai_chat import ARGUMENTS, COMMON_OPTIONS, TEXT_ONLY, OpenAIChat
from weft.models.providers.openai_reply import ReplyContent, first_choice
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Message, Request, Takes, Text

TOP = 20  # tokens: the most that OpenAI and vLLM give by default
TAKES = Takes(own_images="user")


class LogprobsEndpoint(OpenAIChat):
    """A chat model of whose answer the first token is taken, with its alternatives."""

    provider = "logprobs"

    def __init__(self, *arguments: Any, top: int = TOP, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._top = top
        self._gives_tokens = False  # whether any reply had some
        self.identity = {**self.identity, "provider": self.provider, "top": top, "reader": 1}

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        payload = super()._payload(messages, request)
        payload |= {"logprobs": True, "top_logprobs": self._top}
        if request.question is not None:  # the small question before a run is answered in words
            payload |= {"max_tokens": 1, "temperature": 0}
            if "max_tokens" in self._unsupported:
                payload["max_completion_tokens"] = payload.pop("max_tokens")
        return payload

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, request: Request) -> EndpointReply:
        tokens = list_entries(first_choice(msgspec.json.decode(reply.raw)).get("logprobs"))
        if not tokens:
            raise self._report_missing(super()._build_reply(content, reply, request))
        self._gives_tokens = True
        if request.question is None:
            return super()._build_reply(content, reply, request)
        best = max(tokens, key=_likelihood)
        if best.token.strip().startswith("<"):
            raise CallError(f"the model begins with {best.token[:40]!r}, and not with an answer", NO_RETRY)
        return replace(reply, parts=(Text(write_tokens(tokens)),), outcome="answered")

    def _report_missing(self, reply: EndpointReply) -> CallError:
        """Return the error for a reply without log-probabilities.

        It is one call's trouble if the reply is empty, or if others had some.
        """
        if self._gives_tokens or reply.outcome != "answered":
            return CallError(f"{self.address} sent a reply without log-probabilities", TRANSIENT)
        return CallError(f"{self.address} gives no log-probabilities: serve a model that does", FATAL)


def _likelihood(token: Token) -> float:
    return token.logprob


@provider_info(TAKES, TEXT_ONLY, address=True)
@provider_options(**COMMON_OPTIONS, top=positive_int)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the judge `logprobs/NAME@URL`."""
    options = {**chosen, "takes": TAKES, "gives": TEXT_ONLY, "modalities": "none"}
    return from_options(LogprobsEndpoint, spec, blobs, url_of(spec, OPENAI_URL), options, *ARGUMENTS, "top")
