"""Black Forest Labs' FLUX: a task is handed in, and looked at where the service says until its picture is ready.

The key goes to the service's own hosts alone, wherever a reply points. Moderation comes with the status 200. A picture's link lasts ten
minutes: it is fetched as soon as it is there."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from weft.errors import PictureError
from weft.models.converters import flag, one_of
from weft.models.endpoint import NO, TRANSIENT, CallError, Expired, Sent, TaskEndpoint
from weft.models.http import MAX_TEXT
from weft.models.http_endpoint import OPTIONS, HttpEndpoint, address_of, from_options, is_refusal, url_of
from weft.models.providers.image_api import flat
from weft.models.registry import ModelSpec, about, options
from weft.models.sizes import ratio
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Takes, Usage, Want
from weft.untrusted import fields

URL = "https://api.bfl.ai/v1"
OWN = ".bfl.ai"
TAKES = Takes(images="list", own_images="user", most=4)
GIVES = Gives(text=False, both=False, seed=True, sizes="ratio")
WAITING = ("pending", "queued", "processing")


class Flux(HttpEndpoint, TaskEndpoint):
    provider = "bfl"
    takes = TAKES
    gives = GIVES
    picture_hosts = (OWN, ".blob.core.windows.net")
    poll = 1.0

    def __init__(self, model: str, url: str, blobs: Blobs, *, sizes: str, **more: Any) -> None:
        self._sizes = sizes
        super().__init__(model, url, blobs, **({"sizes": sizes} if sizes != "ratio" else {}), **more)

    def _headers(self) -> dict[str, str]:
        return {"x-key": self._key} if self._key else {}

    async def submit(self, messages: tuple[Message, ...], want: Want) -> str:
        prompt, images = flat(messages)
        payload: dict[str, Any] = {"prompt": prompt, **self._drawn(want)}
        for number, image in enumerate(images, start=1):
            payload[f"input_image_{number}" if number > 1 else "input_image"] = image
        if want.size is not None and self._sizes == "pixels":
            payload |= {"width": want.size[0], "height": want.size[1]}
        elif want.size is not None and "aspect_ratio" not in payload:
            payload["aspect_ratio"] = ratio(want.size)
        async with self._post(f"/{self._model}", payload, MAX_TEXT, bare=True) as came:
            if (came.status >= 400 or came.said) and not is_refusal(came.codes):
                self._turned_away(came)
            if came.said:
                return f"refused {came.said[:300]}"
            place = fields(came.body).get("polling_url")
        if not isinstance(place, str) or not place:
            raise CallError(f"{self.address} took a task and did not say where it is", TRANSIENT)
        return place

    async def collect(self, ticket: str, want: Want) -> Sent | None:
        if ticket.startswith("refused "):
            return Sent((), "refused", ticket.removeprefix("refused "), "", self._model, ended="blocked")
        came = await self._http.look(self._own(ticket), self._headers(), called=self.address)
        if came.status >= 400 or (came.said and not fields(came.body).get("status")):
            if came.status == 404:
                raise Expired(f"{self.address} does not know the task any more")
            return self._turned_away(came)
        answer = fields(came.body)
        state, raw = str(answer.get("status") or ""), msgspec.json.encode(came.body).decode()
        if state.lower() in WAITING:
            return None
        if "moderated" in state.lower():
            return Sent((), "refused", state, raw, self._model, ended="blocked")
        link = fields(answer.get("result")).get("sample")
        if state != "Ready" or not isinstance(link, str):
            raise Expired(f"{self.address}: the task ended as {state or 'nothing'}: {str(answer.get('details') or '')[:200]}")
        cost = answer.get("cost")  # in cents, where it is told
        used = Usage(cost=cost / 100 if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None)
        try:
            image = await self._fetched(link)
        except PictureError as error:
            return Sent((), "empty", f"its picture {error}", raw, self._model, used, again=True)
        return Sent((image,), "answered", "", raw, self._model, used)

    def _own(self, ticket: str) -> str:
        """Where the task is, if the key may go there."""
        try:
            place, home = address_of(ticket), urlsplit(self._url)
        except ValueError as error:
            raise CallError(f"{self.address} sent a place to look at that is none: {error}", NO) from None
        ours = place.scheme == "https" and (place.hostname or "").endswith(OWN) and (home.hostname or "").endswith(OWN)
        if (place.scheme, place.netloc) != (home.scheme, home.netloc) and not ours:
            raise CallError(f"{self.address} sent a place to look at on another host: the key does not go there", NO)
        return ticket


@about(TAKES, GIVES, url=URL)
@options(
    **OPTIONS,
    **dict.fromkeys(("seed", "safety_tolerance", "steps"), int),
    **dict.fromkeys(("aspect_ratio", "output_format"), str),
    guidance=float,
    prompt_upsampling=flag,
    sizes=one_of("ratio", "pixels"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Flux:
    url = url_of(spec, URL)
    chosen = {"sizes": "ratio", **chosen}
    return from_options(Flux, spec, blobs, url, chosen, "sizes")
