"""DashScope's pictures: Qwen-Image at once, Wan as tasks (`mode=task`, from 2.6 on `task-messages`); pictures and one text in, one out.

A prompt is not rewritten and nothing is stamped on a picture, unless the options say otherwise. Pictures come as links to the provider's
own storage, which last a day: they are fetched with the reply. Errors come flat, without an `error` around them."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from weft.errors import PictureError
from weft.models.converters import flag, one_of
from weft.models.endpoint import TRANSIENT, CallError, Expired, Sent, TaskEndpoint
from weft.models.http import MAX_REPLY, Answer, error_facts
from weft.models.http_endpoint import OPTIONS, HttpEndpoint, from_options, is_refusal, url_of
from weft.models.providers.image_api import flat
from weft.models.providers.openai_reply import usage_of
from weft.models.registry import ModelSpec, about, options
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Takes, Want
from weft.untrusted import fields

URL = "https://dashscope-intl.aliyuncs.com/api/v1"
TAKES = Takes(images="list", own_images="user", most=3)
GIVES = Gives(text=False, both=False, seed=True, sizes="pixels")
USUAL: dict[str, Any] = {"n": 1, "prompt_extend": False, "watermark": False}
AT_ONCE = "/services/aigc/multimodal-generation/generation"
BY_MESSAGES = "/services/aigc/image-generation/generation"
FROM_WORDS, FROM_PICTURES = "/services/aigc/text2image/image-synthesis", "/services/aigc/image2image/image-synthesis"
OPEN_STATES = ("PENDING", "RUNNING", "SUSPENDED")


class DashScope(HttpEndpoint):
    provider = "dashscope"
    takes = TAKES
    gives = GIVES
    picture_hosts = (".aliyuncs.com",)

    mode = "at-once"

    def __init__(self, model: str, url: str, blobs: Blobs, **more: Any) -> None:
        super().__init__(model, url, blobs, mode=self.mode, **more)

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        came = await self._posted(AT_ONCE, {"model": self._model, "input": _said(messages), "parameters": self._told(want)})
        if came.status >= 400 or came.said:
            return self._turned_away(came)
        output = fields(fields(came.body).get("output"))
        if not isinstance(output.get("choices"), list):  # nobody's reply, and no model's fault
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        return await self._picture(_shown(output), came.body)

    async def _posted(self, path: str, payload: Mapping[str, Any], **headers: str) -> Answer:
        sent = {**self._headers(), **headers}
        async with self._http.post(f"{self._url}{path}", payload, sent, self._blobs, called=self.address, most=MAX_REPLY) as came:
            return came

    def _told(self, want: Want) -> dict[str, Any]:
        size = {"size": f"{want.size[0]}*{want.size[1]}"} if want.size is not None and "size" not in self._parameters else {}
        return {**self._drawn(want), **size}

    async def _picture(self, link: str, body: Any) -> Sent:
        raw, used = msgspec.json.encode(body).decode(), usage_of(body)
        if not link:
            return Sent((), "empty", "it sent no picture", raw, self._model, used)
        try:
            image = await (self._decoded(link) if link.startswith("data:") else self._fetched(link))
        except PictureError as error:
            return Sent((), "empty", f"its picture {error}", raw, self._model, used, again=True)
        return Sent((image,), "answered", "", raw, self._model, used)


class DashScopeTask(DashScope, TaskEndpoint):
    """The same, handed in and waited for."""

    mode = "task"

    def _request(self, messages: tuple[Message, ...], want: Want) -> tuple[str, dict[str, Any]]:
        """Where it goes, and what."""
        prompt, images = flat(messages)
        told = self._told(want)
        negative = {"negative_prompt": told.pop("negative_prompt")} if "negative_prompt" in told else {}
        asked = {"prompt": prompt, **negative, **({"images": images} if images else {})}
        return FROM_PICTURES if images else FROM_WORDS, {"model": self._model, "input": asked, "parameters": told}

    async def submit(self, messages: tuple[Message, ...], want: Want) -> str:
        came = await self._posted(*self._request(messages, want), **{"X-DashScope-Async": "enable"})
        if came.status >= 400 or came.said:
            if is_refusal(came.codes):
                return f"refused {came.said[:300]}"
            self._turned_away(came)
        task = fields(fields(came.body).get("output")).get("task_id")
        if not isinstance(task, str) or not task.replace("-", "").isalnum():
            raise CallError(f"{self.address} took a task and did not name it", TRANSIENT)
        return task

    async def collect(self, ticket: str, want: Want) -> Sent | None:
        if ticket.startswith("refused "):
            return Sent((), "refused", ticket.removeprefix("refused "), "", self._model, ended="blocked")
        came = await self._http.look(f"{self._url}/tasks/{ticket}", self._headers(), called=self.address)
        output = fields(fields(came.body).get("output"))
        state = str(output.get("task_status") or "")
        if came.status >= 400 or (came.said and not state):
            return self._turned_away(came)
        if state in OPEN_STATES:
            return None
        results: Any = output.get("results")
        made = [fields(one) for one in cast(list[Any], results)] if isinstance(results, list) else []
        if state == "SUCCEEDED":
            link = next((str(one["url"]) for one in made if one.get("url")), "") or _shown(output)
            return await self._picture(link, came.body)
        said, codes = error_facts({"error": next((one for one in made if one.get("code")), output)})
        if is_refusal(codes):
            raw = msgspec.json.encode(came.body).decode()
            return Sent((), "refused", said[:300], raw, self._model, ended="blocked")
        raise Expired(f"{self.address}: the task ended as {state or 'nothing'}: {said[:300]}")


class DashScopeMessages(DashScopeTask):
    """The same, in the form of later models."""

    mode = "task-messages"

    def _request(self, messages: tuple[Message, ...], want: Want) -> tuple[str, dict[str, Any]]:
        return BY_MESSAGES, {"model": self._model, "input": _said(messages), "parameters": self._told(want)}


def _said(messages: tuple[Message, ...]) -> dict[str, Any]:
    prompt, images = flat(messages)
    return {"messages": [{"role": "user", "content": [*({"image": image} for image in images), {"text": prompt}]}]}


def _shown(output: dict[str, Any]) -> str:
    """The picture of a reply in the form of messages."""
    choices: Any = output.get("choices")
    choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
    shown: Any = fields(choice.get("message")).get("content")
    links = [fields(one).get("image") for one in cast(list[Any], shown)] if isinstance(shown, list) else []
    return next((str(link) for link in links if link), "")


KINDS = {kind.mode: kind for kind in (DashScope, DashScopeTask, DashScopeMessages)}


@about(TAKES, GIVES, url=URL)
@options(
    **OPTIONS,
    seed=int,
    **dict.fromkeys(("size", "negative_prompt"), str),
    **dict.fromkeys(("prompt_extend", "watermark"), flag),
    mode=one_of(*KINDS),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> DashScope:
    url, kind = url_of(spec, URL), KINDS[chosen.pop("mode", "at-once")]
    return from_options(kind, spec, blobs, url, chosen, **USUAL)
