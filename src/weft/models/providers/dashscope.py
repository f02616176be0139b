"""DashScope's pictures: Qwen-Image at once, Wan as tasks (`mode=task`, from 2.6 on `task-messages`); pictures and one
text in, one out.

A prompt is not rewritten and nothing is stamped on a picture, unless the options say otherwise. Pictures come as links
to the provider's own storage, which last a day: they are fetched with the reply. Errors come flat, without an `error`
around them."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from weft.errors import ImageError
from weft.models.converters import boolean, one_of
from weft.models.endpoint import TRANSIENT, CallError, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import MAX_REPLY_BYTES, HttpResponse, parse_error
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, is_refusal, url_of
from weft.models.providers.image_api import flatten_messages
from weft.models.providers.openai_reply import read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes
from weft.untrusted import dict_or_empty

URL = "https://dashscope-intl.aliyuncs.com/api/v1"
TAKES = Takes(images="list", own_images="user", max_images=3)
GIVES = Gives(text=False, interleaved=False, seed=True, sizes="pixels")
USUAL: dict[str, Any] = {"n": 1, "prompt_extend": False, "watermark": False}
AT_ONCE = "/services/aigc/multimodal-generation/generation"
BY_MESSAGES = "/services/aigc/image-generation/generation"
FROM_WORDS = "/services/aigc/text2image/image-synthesis"
FROM_PICTURES = "/services/aigc/image2image/image-synthesis"
OPEN_STATES = ("PENDING", "RUNNING", "SUSPENDED")


class DashScope(HttpEndpoint):
    provider = "dashscope"
    takes = TAKES
    gives = GIVES
    image_hosts = (".aliyuncs.com",)

    mode = "at-once"

    def __init__(self, model: str, url: str, blobs: Blobs, **more: Any) -> None:
        super().__init__(model, url, blobs, mode=self.mode, **more)

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        came = await self._posted(
            AT_ONCE, {"model": self._model, "input": _said(messages), "parameters": self._told(want)}
        )
        if came.status >= 400 or came.error_message:
            return self._read_error(came)
        output = dict_or_empty(dict_or_empty(came.body).get("output"))
        if not isinstance(output.get("choices"), list):  # nobody's reply, and no model's fault
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        return await self._picture(_shown(output), came.body)

    async def _posted(self, path: str, payload: Mapping[str, Any], **headers: str) -> HttpResponse:
        sent = {**self._headers(), **headers}
        async with self._http.post(
            f"{self._url}{path}", payload, sent, self._blobs, called=self.address, most=MAX_REPLY_BYTES
        ) as came:
            return came

    def _told(self, want: Request) -> dict[str, Any]:
        size = (
            {"size": f"{want.size[0]}*{want.size[1]}"}
            if want.size is not None and "size" not in self._parameters
            else {}
        )
        return {**self._parameters_for(want), **size}

    async def _picture(self, link: str, body: Any) -> EndpointReply:
        raw = msgspec.json.encode(body).decode()
        used = read_usage(body)
        if not link:
            return EndpointReply((), "empty", "it sent no picture", raw, self._model, used)
        try:
            image = await (self._decode_image(link) if link.startswith("data:") else self._fetch_image(link))
        except ImageError as error:
            return EndpointReply((), "empty", f"its picture {error}", raw, self._model, used, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, used)


class DashScopeTask(DashScope, TaskEndpoint):
    """The same, handed in and waited for."""

    mode = "task"

    def _request(self, messages: tuple[Message, ...], want: Request) -> tuple[str, dict[str, Any]]:
        """Where it goes, and what."""
        prompt, images = flatten_messages(messages)
        told = self._told(want)
        negative = {"negative_prompt": told.pop("negative_prompt")} if "negative_prompt" in told else {}
        asked = {"prompt": prompt, **negative, **({"images": images} if images else {})}
        return FROM_PICTURES if images else FROM_WORDS, {"model": self._model, "input": asked, "parameters": told}

    async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
        came = await self._posted(*self._request(messages, want), **{"X-DashScope-Async": "enable"})
        if came.status >= 400 or came.error_message:
            if is_refusal(came.error_codes):
                return f"refused {came.error_message[:300]}"
            self._read_error(came)
        task = dict_or_empty(dict_or_empty(came.body).get("output")).get("task_id")
        if not isinstance(task, str) or not task.replace("-", "").isalnum():
            raise CallError(f"{self.address} took a task and did not name it", TRANSIENT)
        return task

    async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
        if ticket.startswith("refused "):
            return EndpointReply((), "refused", ticket.removeprefix("refused "), "", self._model, stop_cause="blocked")
        came = await self._http.get_json(f"{self._url}/tasks/{ticket}", self._headers(), called=self.address)
        output = dict_or_empty(dict_or_empty(came.body).get("output"))
        state = str(output.get("task_status") or "")
        if came.status >= 400 or (came.error_message and not state):
            return self._read_error(came)
        if state in OPEN_STATES:
            return None
        results: Any = output.get("results")
        made = [dict_or_empty(one) for one in cast(list[Any], results)] if isinstance(results, list) else []
        if state == "SUCCEEDED":
            link = next((str(one["url"]) for one in made if one.get("url")), "") or _shown(output)
            return await self._picture(link, came.body)
        said, codes = parse_error({"error": next((one for one in made if one.get("code")), output)})
        if is_refusal(codes):
            raw = msgspec.json.encode(came.body).decode()
            return EndpointReply((), "refused", said[:300], raw, self._model, stop_cause="blocked")
        raise TicketExpired(f"{self.address}: the task ended as {state or 'nothing'}: {said[:300]}")


class DashScopeMessages(DashScopeTask):
    """The same, in the form of later models."""

    mode = "task-messages"

    def _request(self, messages: tuple[Message, ...], want: Request) -> tuple[str, dict[str, Any]]:
        return BY_MESSAGES, {"model": self._model, "input": _said(messages), "parameters": self._told(want)}


def _said(messages: tuple[Message, ...]) -> dict[str, Any]:
    prompt, images = flatten_messages(messages)
    return {"messages": [{"role": "user", "content": [*({"image": image} for image in images), {"text": prompt}]}]}


def _shown(output: dict[str, Any]) -> str:
    """The picture of a reply in the form of messages."""
    choices: Any = output.get("choices")
    choice = dict_or_empty(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
    shown: Any = dict_or_empty(choice.get("message")).get("content")
    links = [dict_or_empty(one).get("image") for one in cast(list[Any], shown)] if isinstance(shown, list) else []
    return next((str(link) for link in links if link), "")


KINDS = {kind.mode: kind for kind in (DashScope, DashScopeTask, DashScopeMessages)}


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **HTTP_OPTIONS,
    seed=int,
    **dict.fromkeys(("size", "negative_prompt"), str),
    **dict.fromkeys(("prompt_extend", "watermark"), boolean),
    mode=one_of(*KINDS),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> DashScope:
    url = url_of(spec, URL)
    kind = KINDS[chosen.pop("mode", "at-once")]
    return from_options(kind, spec, blobs, url, chosen, **USUAL)
