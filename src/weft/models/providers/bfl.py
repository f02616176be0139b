"""Black Forest Labs' FLUX: a task is handed in, and looked at where the service says until its picture is ready.

The key goes to the service's own hosts alone, wherever a reply points. Moderation comes with the status 200. A
picture's link lasts ten minutes: it is fetched as soon as it is there."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from weft.errors import ImageError
from weft.models.converters import boolean, one_of
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import MAX_TEXT_BYTES
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, is_refusal, parse_address, url_of
from weft.models.providers.image_api import flatten_messages
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes, Usage
from weft.untrusted import dict_or_empty

URL = "https://api.bfl.ai/v1"
OWN = ".bfl.ai"
TAKES = Takes(images="list", own_images="user", max_images=4)
GIVES = Gives(text=False, interleaved=False, seed=True, sizes="ratio")
WAITING = ("pending", "queued", "processing")


class Flux(HttpEndpoint, TaskEndpoint):
    provider = "bfl"
    takes = TAKES
    gives = GIVES
    image_hosts = (OWN, ".blob.core.windows.net")
    poll_interval = 1.0

    def __init__(self, model: str, url: str, blobs: Blobs, *, sizes: str, **more: Any) -> None:
        self._sizes = sizes
        super().__init__(model, url, blobs, **({"sizes": sizes} if sizes != "ratio" else {}), **more)

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"x-key": self._key}
        return {}

    async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
        prompt, images = flatten_messages(messages)
        payload: dict[str, Any] = {"prompt": prompt, **self._parameters_for(want)}
        for number, image in enumerate(images, start=1):
            payload[f"input_image_{number}" if number > 1 else "input_image"] = image
        if want.size is not None and self._sizes == "pixels":
            payload |= {"width": want.size[0], "height": want.size[1]}
        elif want.size is not None and "aspect_ratio" not in payload:
            payload["aspect_ratio"] = nearest_ratio(want.size)
        async with self._post(f"/{self._model}", payload, MAX_TEXT_BYTES, bare=True) as came:
            if (came.status >= 400 or came.error_message) and not is_refusal(came.error_codes):
                self._read_error(came)
            if came.error_message:
                return f"refused {came.error_message[:300]}"
            place = dict_or_empty(came.body).get("polling_url")
        if not isinstance(place, str) or not place:
            raise CallError(f"{self.address} took a task and did not say where it is", TRANSIENT)
        return place

    async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
        if ticket.startswith("refused "):
            return EndpointReply((), "refused", ticket.removeprefix("refused "), "", self._model, stop_cause="blocked")
        came = await self._http.get_json(self._own(ticket), self._headers(), called=self.address)
        if came.status >= 400 or (came.error_message and not dict_or_empty(came.body).get("status")):
            if came.status == 404:
                raise TicketExpired(f"{self.address} does not know the task any more")
            return self._read_error(came)
        answer = dict_or_empty(came.body)
        state = str(answer.get("status") or "")
        raw = msgspec.json.encode(came.body).decode()
        if state.lower() in WAITING:
            return None
        if "moderated" in state.lower():
            return EndpointReply((), "refused", state, raw, self._model, stop_cause="blocked")
        link = dict_or_empty(answer.get("result")).get("sample")
        if state != "Ready" or not isinstance(link, str):
            raise TicketExpired(
                f"{self.address}: the task ended as {state or 'nothing'}: {str(answer.get('details') or '')[:200]}"
            )
        cost = answer.get("cost")  # in cents, where it is told
        used = Usage(cost=cost / 100 if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None)
        try:
            image = await self._fetch_image(link)
        except ImageError as error:
            return EndpointReply((), "empty", f"its picture {error}", raw, self._model, used, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, used)

    def _own(self, ticket: str) -> str:
        """Where the task is, if the key may go there."""
        try:
            place = parse_address(ticket)
            home = urlsplit(self._url)
        except ValueError as error:
            raise CallError(f"{self.address} sent a place to look at that is none: {error}", NO_RETRY) from None
        ours = place.scheme == "https" and (place.hostname or "").endswith(OWN) and (home.hostname or "").endswith(OWN)
        if (place.scheme, place.netloc) != (home.scheme, home.netloc) and not ours:
            raise CallError(
                f"{self.address} sent a place to look at on another host: the key does not go there", NO_RETRY
            )
        return ticket


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
    url = url_of(spec, URL)
    chosen = {"sizes": "ratio", **chosen}
    return from_options(Flux, spec, blobs, url, chosen, "sizes")
