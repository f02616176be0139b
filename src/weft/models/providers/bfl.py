"""Black Forest Labs' FLUX, a task API: submit a request, then poll the address that the service names until the image
is ready.

The key is sent to the service's own hosts alone, wherever a reply points. Moderation comes with status 200. The link to
an image expires after ten minutes, so the image is fetched as soon as the task is done.
"""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from weft.errors import ImageError
from weft.models.converters import boolean, one_of
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import MAX_TEXT_BYTES
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, is_refusal, parse_address, url_of
from weft.models.providers.message_parts import flatten_messages
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes, Usage
from weft.untrusted import dict_or_empty

URL = "https://api.bfl.ai/v1"
OWN_DOMAIN = ".bfl.ai"
TAKES = Takes(images="list", own_images="user", max_images=4)
GIVES = Gives(text=False, interleaved=False, seed=True, sizes="ratio")
WAITING_STATES = ("pending", "queued", "processing")
REFUSED = "refused "  # the ticket of a request that was refused at once: this, and the reason


class Flux(HttpEndpoint, TaskEndpoint):
    provider = "bfl"
    takes = TAKES
    gives = GIVES
    image_hosts = (OWN_DOMAIN, ".blob.core.windows.net")
    poll_interval = 1.0

    def __init__(self, model: str, url: str, blobs: Blobs, *, sizes: str, **more: Any) -> None:
        self._sizes = sizes
        identity: dict[str, Any] = {}
        if sizes != "ratio":
            identity["sizes"] = sizes
        super().__init__(model, url, blobs, **identity, **more)

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"x-key": self._key}
        return {}

    async def submit(self, messages: tuple[Message, ...], request: Request) -> str:
        payload = self._payload(messages, request)
        async with self._post(f"/{self._model}", payload, MAX_TEXT_BYTES, bare=True) as response:
            is_error = response.status >= 400 or response.error_message
            if is_error and not is_refusal(response.error_codes):
                self._read_error(response)
            if response.error_message:
                return f"{REFUSED}{response.error_message[:300]}"
            polling_url = dict_or_empty(response.body).get("polling_url")
        if not isinstance(polling_url, str) or not polling_url:
            raise CallError(f"{self.address} accepted a task without a `polling_url`", TRANSIENT)
        return polling_url

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        prompt, images = flatten_messages(messages)
        payload: dict[str, Any] = {"prompt": prompt, **self._parameters_for(request)}
        for number, image in enumerate(images, start=1):
            name = "input_image"
            if number > 1:
                name = f"input_image_{number}"
            payload[name] = image
        if request.size is not None and self._sizes == "pixels":
            payload |= {"width": request.size[0], "height": request.size[1]}
        elif request.size is not None and "aspect_ratio" not in payload:
            payload["aspect_ratio"] = nearest_ratio(request.size)
        return payload

    async def collect(self, ticket: str, request: Request) -> EndpointReply | None:
        if ticket.startswith(REFUSED):
            return EndpointReply((), "refused", ticket.removeprefix(REFUSED), "", self._model, stop_cause="blocked")
        response = await self._http.get_json(self._check_host(ticket), self._headers(), endpoint_name=self.address)
        answer = dict_or_empty(response.body)
        if response.status >= 400 or (response.error_message and not answer.get("status")):
            if response.status == 404:
                raise TicketExpired(f"{self.address} does not know the task any more")
            return self._read_error(response)
        state = str(answer.get("status") or "")
        raw = msgspec.json.encode(response.body).decode()
        if state.lower() in WAITING_STATES:
            return None
        if "moderated" in state.lower():
            return EndpointReply((), "refused", state, raw, self._model, stop_cause="blocked")
        link = dict_or_empty(answer.get("result")).get("sample")
        if state != "Ready" or not isinstance(link, str):
            details = str(answer.get("details") or "")[:200]
            raise TicketExpired(f"{self.address}: the task ended as {state or 'nothing'}: {details}")
        usage = _read_cost(answer)
        try:
            image = await self._fetch_image(link)
        except ImageError as error:
            return EndpointReply((), "empty", f"its image {error}", raw, self._model, usage, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, usage)

    def _check_host(self, polling_url: str) -> str:
        """Return the address of a task. Raises CallError where the key must not be sent to its host."""
        try:
            target = parse_address(polling_url)
            home = urlsplit(self._url)
        except ValueError as error:
            raise CallError(f"{self.address} sent an invalid `polling_url`: {error}", NO_RETRY) from None
        if (target.scheme, target.netloc) == (home.scheme, home.netloc):
            return polling_url
        hosts = (target.hostname or "", home.hostname or "")
        if target.scheme == "https" and all(host.endswith(OWN_DOMAIN) for host in hosts):
            return polling_url
        raise CallError(f"{self.address} sent a `polling_url` on another host: the key is not sent there", NO_RETRY)


def _read_cost(answer: dict[str, Any]) -> Usage:
    cents = answer.get("cost")
    if isinstance(cents, (int, float)) and 0 <= cents < 1e6:
        return Usage(cost=cents / 100)
    return Usage(cost=None)


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **HTTP_OPTIONS,
    **dict.fromkeys(("seed", "safety_tolerance", "steps"), int),
    **dict.fromkeys(("aspect_ratio", "output_format"), str),
    guidance=float,
    prompt_upsampling=boolean,
    sizes=one_of("ratio", "pixels"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Flux:
    """Build the endpoint of `bfl/NAME` or `bfl/NAME@URL`."""
    url = url_of(spec, URL)
    chosen = {"sizes": "ratio", **chosen}
    return from_options(Flux, spec, blobs, url, chosen, "sizes")
