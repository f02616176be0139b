"""DashScope's image models: Qwen-Image answers at once, Wan as tasks (`mode=task`; from Wan 2.6 on `task-messages`).

Requests have images and one prompt; replies one image. By default prompts are not rewritten and images get no
watermark. Images come as links to the provider's own storage that expire after a day, so they are fetched with the
reply. Errors come flat, without an `error` object around them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.converters import boolean, one_of
from weft.models.endpoint import TRANSIENT, CallError, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import MAX_REPLY_BYTES, HttpResponse, parse_error
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, is_refusal, url_of
from weft.models.providers.message_parts import flatten_messages
from weft.models.providers.openai_reply import first_choice, list_of_dicts, read_token_count, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Request, Takes
from weft.untrusted import dict_or_empty

URL = "https://dashscope-intl.aliyuncs.com/api/v1"
TAKES = Takes(images="list", own_images="user", max_images=3)
GIVES = Gives(text=False, interleaved=False, seed=True, sizes="pixels")
DEFAULTS: dict[str, Any] = {"n": 1, "prompt_extend": False, "watermark": False}
AT_ONCE_PATH = "/services/aigc/multimodal-generation/generation"
MESSAGES_PATH = "/services/aigc/image-generation/generation"
TEXT_TO_IMAGE_PATH = "/services/aigc/text2image/image-synthesis"
IMAGE_TO_IMAGE_PATH = "/services/aigc/image2image/image-synthesis"
WAITING_STATES = ("PENDING", "RUNNING", "SUSPENDED")
REFUSED = "refused "  # the ticket of a request that was refused at once: this, and the reason


class DashScope(HttpEndpoint):
    provider = "dashscope"
    takes = TAKES
    gives = GIVES
    image_hosts = (".aliyuncs.com",)

    mode = "at-once"

    def __init__(self, model: str, url: str, blobs: Blobs, **more: Any) -> None:
        super().__init__(model, url, blobs, mode=self.mode, **more)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        response = await self._post_request(AT_ONCE_PATH, self._messages_payload(messages, request))
        if response.status >= 400 or response.error_message:
            return self._read_error(response)
        output = dict_or_empty(dict_or_empty(response.body).get("output"))
        if not isinstance(output.get("choices"), list):  # not a reply of the model's, so not its fault
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        return await self._read_image(_find_image_links(output), response.body)

    async def _post_request(self, path: str, payload: Mapping[str, Any], **headers: str) -> HttpResponse:
        url = f"{self._url}{path}"
        all_headers = {**self._headers(), **headers}
        async with self._http.post(
            url, payload, all_headers, self._blobs, endpoint_name=self.address, max_bytes=MAX_REPLY_BYTES
        ) as response:
            return response

    def _messages_payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        prompt, images = flatten_messages(messages)
        content: list[dict[str, Any]] = [{"image": image} for image in images]
        content.append({"text": prompt})
        input = {"messages": [{"role": "user", "content": content}]}
        return {"model": self._model, "input": input, "parameters": self._build_parameters(request)}

    def _build_parameters(self, request: Request) -> dict[str, Any]:
        parameters = {**self._parameters_for(request)}
        if request.size is not None and "size" not in self._parameters:
            parameters["size"] = f"{request.size[0]}*{request.size[1]}"
        return parameters

    async def _read_image(self, links: list[str], body: Any) -> EndpointReply:
        """Build the reply from the first of the links to its images, or data URLs; without one it is empty."""
        raw = msgspec.json.encode(body).decode()
        counts = dict_or_empty(dict_or_empty(body).get("usage"))
        images = max(len(links), read_token_count(counts.get("image_count")))
        usage = replace(read_usage(body), images=images)
        if not links:
            return EndpointReply((), "empty", "it sent no image", raw, self._model, usage)
        try:
            image = await self._load_image(links[0])
        except ImageError as error:
            return EndpointReply((), "empty", f"its image {error}", raw, self._model, usage, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, usage)

    async def _load_image(self, link: str) -> Image:
        if link.startswith("data:"):
            return await self._decode_image(link)
        return await self._fetch_image(link)


class DashScopeTask(DashScope, TaskEndpoint):
    """The task API: a request is submitted, and its image collected later."""

    mode = "task"

    def _build_request(self, messages: tuple[Message, ...], request: Request) -> tuple[str, dict[str, Any]]:
        """Return the path and the payload of a request."""
        prompt, images = flatten_messages(messages)
        parameters = self._build_parameters(request)
        input: dict[str, Any] = {"prompt": prompt}
        if "negative_prompt" in parameters:
            input["negative_prompt"] = parameters.pop("negative_prompt")
        path = TEXT_TO_IMAGE_PATH
        if images:
            path = IMAGE_TO_IMAGE_PATH
            input["images"] = images
        return path, {"model": self._model, "input": input, "parameters": parameters}

    async def submit(self, messages: tuple[Message, ...], request: Request) -> str:
        path, payload = self._build_request(messages, request)
        response = await self._post_request(path, payload, **{"X-DashScope-Async": "enable"})
        if response.status >= 400 or response.error_message:
            if is_refusal(response.error_codes):
                return f"{REFUSED}{response.error_message[:300]}"
            self._read_error(response)
        task = dict_or_empty(dict_or_empty(response.body).get("output")).get("task_id")
        if not isinstance(task, str) or not task.replace("-", "").isalnum():
            raise CallError(f"{self.address} accepted a task without a `task_id`", TRANSIENT)
        return task

    async def collect(self, ticket: str, request: Request) -> EndpointReply | None:
        if ticket.startswith(REFUSED):
            return EndpointReply((), "refused", ticket.removeprefix(REFUSED), "", self._model, stop_cause="blocked")
        response = await self._http.get_json(f"{self._url}/tasks/{ticket}", self._headers(), endpoint_name=self.address)
        output = dict_or_empty(dict_or_empty(response.body).get("output"))
        state = str(output.get("task_status") or "")
        if response.status >= 400 or (response.error_message and not state):
            return self._read_error(response)
        if state in WAITING_STATES:
            return None
        results = list_of_dicts(output.get("results"))
        if state == "SUCCEEDED":
            links = [str(result["url"]) for result in results if result.get("url")]
            return await self._read_image(links or _find_image_links(output), response.body)
        failed_results = [result for result in results if result.get("code")]
        message, codes = parse_error({"error": next(iter(failed_results), output)})
        if is_refusal(codes):
            raw = msgspec.json.encode(response.body).decode()
            return EndpointReply((), "refused", message[:300], raw, self._model, stop_cause="blocked")
        raise TicketExpired(f"{self.address}: the task ended as {state or 'nothing'}: {message[:300]}")


class DashScopeMessages(DashScopeTask):
    """The task API of later models, whose requests have messages as `DashScope` sends them."""

    mode = "task-messages"

    def _build_request(self, messages: tuple[Message, ...], request: Request) -> tuple[str, dict[str, Any]]:
        return MESSAGES_PATH, self._messages_payload(messages, request)


def _find_image_links(output: dict[str, Any]) -> list[str]:
    """Return the links to the images of the first choice."""
    message = dict_or_empty(first_choice(output).get("message"))
    return [str(part["image"]) for part in list_of_dicts(message.get("content")) if part.get("image")]


CLASS_BY_MODE = {cls.mode: cls for cls in (DashScope, DashScopeTask, DashScopeMessages)}


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **HTTP_OPTIONS,
    seed=int,
    **dict.fromkeys(("size", "negative_prompt"), str),
    **dict.fromkeys(("prompt_extend", "watermark"), boolean),
    mode=one_of(*CLASS_BY_MODE),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> DashScope:
    """Build the endpoint of `dashscope/NAME` or `dashscope/NAME@URL`; `mode` chooses the protocol."""
    url = url_of(spec, URL)
    endpoint_class = CLASS_BY_MODE[chosen.pop("mode", "at-once")]
    return from_options(endpoint_class, spec, blobs, url, chosen, **DEFAULTS)
