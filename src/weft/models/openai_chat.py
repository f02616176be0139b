"""Chat completions as OpenAI, OpenRouter, vLLM, vLLM-Omni, SGLang, llama.cpp and many others speak it, pictures in and out.

Parts keep their order as far as the server's reply has one: `content` as a string, as a list of parts, pictures in `message.images`
(after the text), data URLs inside text. HTTP 200 is not success: refusals, empty bodies and errors inside a 200 are told apart.
Keys come from the environment and go only into the request header; whoever keeps or shows what a server sends has them cut out.
"""

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from weft.errors import PictureError, UserError
from weft.models.compose.imagine import ratio
from weft.models.endpoint import LISTEN, NO, TRANSIENT, CallError, Endpoint, Sent
from weft.models.http import MAX_REPLY, MAX_TEXT, Http, address_of, decide, fields, is_refusal
from weft.models.openai_parts import Unpacked, unpack
from weft.models.registry import Spec, finite, options, seconds
from weft.models.streamed import Odd, Stream
from weft.secrets import hide, without_secrets
from weft.store.blobs import Blobs
from weft.types import Image, Message, Takes, Text, Thought, Usage, Want, outcome_of

DEFAULT_URL = "https://api.openai.com/v1"
LEAST = 64  # tokens, under which a limit is no use
KEY_BY_HOST = {"api.openai.com": "OPENAI_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"}


class OpenAIChat(Endpoint):
    def __init__(
        self,
        model: str,
        url: str,
        blobs: Blobs,
        *,
        name: str = "",
        key: str = "",
        takes: Takes | None = None,
        own_images: str = "user",
        sizes: str = "words",
        modalities: str = "image,text",
        timeout: float = 600,
        fetch_images: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._model, self._blobs, self._key = model, blobs, key.strip()
        if self._key:
            hide(self._key)
        self._url = url.rstrip("/") + ("" if url.rstrip("/").endswith("/chat/completions") else "/chat/completions")
        self._own_images, self._fetch, self._sizes = own_images, fetch_images, sizes
        self._modalities = [word for word in modalities.split(",") if word and word != "none"]
        self._parameters = dict(parameters or {})
        self._unsupported: set[str] = set()
        self._http = Http(timeout)
        self.close = self._http.close
        self.name = name or f"openai-chat/{model}"
        self.address = urlsplit(self._url)._replace(query="", fragment="").geturl().removesuffix("/chat/completions")
        self.takes = takes or Takes(own_images="user" if own_images == "user" else "assistant")
        self.identity = {
            "provider": "openai-chat",
            "model": model,
            "url": self.address,
            "own_images": own_images,
            "modalities": self._modalities,
            "parameters": self._parameters,
            **({"sizes": sizes} if sizes != "words" else {}),
        }

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        most = MAX_TEXT if want.kind == "text" else MAX_REPLY
        while True:
            payload = self._payload(messages, want)
            heard = LISTEN.get() if payload["stream"] else None
            stream = Stream(heard, self.address) if heard is not None else None
            try:
                answered = await self._once(payload, headers, most, stream)
            except Odd:  # at once it may do better
                self._unsupported.add("stream")
                continue
            if isinstance(answered, Sent):
                return answered
            if answered is not None:
                got, sent = answered
                break
        return self._read(await self._follow(got) if got.links else got, sent, want)

    async def _once(
        self, payload: dict[str, Any], headers: Mapping[str, str], most: int, stream: Stream | None
    ) -> tuple[Unpacked, Sent] | Sent | None:
        """One request: what came, or a refusal, or nothing where the same is to be asked without what the server does not know."""
        async with self._http.post(self._url, payload, headers, self._blobs, called=self.address, most=most, stream=stream) as came:
            if came.status < 400 and not came.said:
                return await self._taken(came.body)
            status = came.status
            if status < 400:
                code = re.sub("[^0-9]", "", came.codes.split(" ")[0])
                status = int(code) if len(code) == 3 else 502
            said = came.said or came.text
            if is_refusal(came.codes):
                return Sent((), "refused", said[:1000], came.text, self._model)
            if not self._drop_unsupported(status, said, payload):
                raise CallError(self._explain(status, said), decide(status, came.codes, came.headers, came.body))
        return None

    # the request

    def _payload(self, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, "messages": [self._message(m) for m in messages], "stream": False}
        payload.update(self._parameters)
        if LISTEN.get() is not None and want.kind == "text" and want.schema is None and "stream" not in self._unsupported:
            payload["stream"] = True
            payload |= {"stream_options": {"include_usage": True}} if "stream_options" not in self._unsupported else {}
        if self._is_capped():
            payload["max_tokens"] = self.longest
        if "max_tokens" in self._unsupported and "max_tokens" in payload:
            payload["max_completion_tokens"] = payload.pop("max_tokens")
        if want.kind != "text" and self._modalities and "modalities" not in self._unsupported:
            payload["modalities"] = self._modalities
        if want.schema is not None and "response_format" not in self._unsupported:
            payload["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": want.schema},
            }
        if want.draw and isinstance(payload.get("seed"), int):
            payload["seed"] += want.draw
        if want.size is not None and self._sizes == "size":
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        elif want.size is not None and self._sizes == "aspect_ratio":
            payload["image_config"] = {**fields(payload.get("image_config")), "aspect_ratio": ratio(want.size)}
        return payload

    def _is_capped(self) -> bool:
        """Whether a budget, and not the user, limits what a reply may have."""
        return self.longest is not None and not {"max_tokens", "max_completion_tokens"} & set(self._parameters)

    def _message(self, message: Message) -> dict[str, Any]:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if not any(isinstance(part, Image) for part in message.parts):
            return {"role": message.role, "content": "\n".join(texts)}
        content = [
            _image_part(part) if isinstance(part, Image) else {"type": "text", "text": part.text}
            for part in message.parts
            if not isinstance(part, Thought)
        ]
        if message.role == "assistant" and self._own_images == "images":
            return {"role": "assistant", "content": "".join(texts), "images": [part for part in content if part["type"] == "image_url"]}
        return {"role": message.role, "content": content}

    # the reply

    async def _taken(self, body: Any) -> tuple[Unpacked, Sent]:
        """The reply's parts, their pictures in the store, and what else is kept of it."""
        choices: Any = fields(body).get("choices")
        choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        if not choice:
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        got = await asyncio.to_thread(unpack, choice, self._blobs)
        served = str(fields(body).get("model") or self._model)
        return got, Sent((), "answered", raw=msgspec.json.encode(body).decode(), served=served, usage=usage_of(body))

    def _read(self, got: Unpacked, sent: Sent, want: Want) -> Sent:
        raw, served, usage = sent.raw, sent.served, sent.usage
        if got.refusal:
            return Sent(got.parts, "refused", got.refusal, raw, served, usage)
        if got.cut and self._is_capped():  # not the model's doing, and no answer to keep
            why = f"the reply was cut at {self.longest} tokens, the limit that --budget sets where there is none: give max_tokens"
            return Sent((), "failed", why, raw, served, usage)
        outcome, reason = outcome_of(got.parts, want.kind)
        if outcome == "empty" and got.broken:
            return Sent(got.parts, "empty", f"its picture {got.broken}", raw, served, usage, again=True)
        if got.cut and not reason:
            reason = "the reply was cut at the token limit"
        silent = all(isinstance(part, Thought) for part in got.parts)
        return Sent(got.parts, outcome, reason, raw, served, usage, again=outcome == "empty" and silent)

    async def _follow(self, got: Unpacked) -> Unpacked:
        """Pictures that came as links: fetched from the endpoint's own host, from others only where the user allowed it."""
        parts = list(got.parts)
        for position, link in reversed(got.links):
            try:
                if address_of(link).netloc != urlsplit(self._url).netloc and not self._fetch:
                    why = f"{self.address} sent a link to another host instead of a picture; allow it with fetch_images=true"
                    raise CallError(why, NO, billed=True)
                async with self._http.get(link, called="the picture's link") as came:
                    if came.status != 200:
                        moved = ": it redirects" if 300 <= came.status < 400 else ""
                        raise CallError(f"the picture's link answered {came.status}{moved}", TRANSIENT)
                    parts.insert(position, await asyncio.to_thread(self._blobs.put, bytes(came.data)))
            except PictureError as error:
                return msgspec.structs.replace(got, broken=str(error), links=())
            except ValueError as error:
                return msgspec.structs.replace(got, broken=f"came as a link: {error}", links=())
        return msgspec.structs.replace(got, parts=tuple(parts), links=())

    # errors

    def _drop_unsupported(self, status: int, said: str, payload: dict[str, Any]) -> bool:
        """A server that does not know a field says so with 400 or 422: leave the field out from now on. True if this request had it."""
        if status not in (400, 422, 501):
            return False
        lowered = said.lower()
        if self._is_capped() and "max_tokens" in payload and "max_tokens" in lowered and "max_completion_tokens" not in lowered:
            return self._lower(payload["max_tokens"], said)
        for field, words in (
            ("response_format", ("response_format", "json_schema", "structured")),
            ("modalities", ("modalities",)),
            ("stream_options", ("stream_options", "include_usage")),
            ("stream", ("stream",)),
            ("max_tokens", ("max_completion_tokens",)),
        ):
            ours = field not in self._parameters or field == "max_tokens"  # what a user gave stays, and is the user's to take back
            if ours and payload.get(field) and any(re.search(rf"\b{word}", lowered) for word in words):
                self._unsupported.add(field)
                return True
        return False

    def _lower(self, sent: int, said: str) -> bool:
        """A budget's own limit is more than the model allows: the most that it names, or half. True if that is worth another try."""
        told = [int(number) for number in re.findall(r"(?<![\d.])\d{2,6}(?![\d.])", said)]
        self.longest = min(self.longest or sent, max((number for number in told if number < sent), default=sent // 2))
        return self.longest >= LEAST

    def _explain(self, status: int, said: str) -> str:
        said = " ".join(said.split())
        said = said if len(said) <= 300 else said[:299] + "…"
        if status == 401:
            hint = "the key was not accepted" if self._key else "it wants a key; set the environment variable that `weft doctor` names"
            return f"{self.address} answered 401: {hint}: {said}"
        return f"{self.address} answered {status}{': that is not allowed' if status == 403 else ''}: {said}"


def _image_part(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image}}


def usage_of(body: Any) -> Usage:
    numbers = fields(fields(body).get("usage"))
    cost = numbers.get("cost")
    return Usage(
        tokens_in=_count(numbers.get("prompt_tokens") or numbers.get("input_tokens")),
        tokens_out=_count(numbers.get("completion_tokens") or numbers.get("output_tokens")),
        cost=float(cost) if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None,
    )


def _count(value: Any) -> int:
    """A number of tokens, as far as it can be one."""
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1e12 else 0


def key_variable(url: str, chosen: str = "") -> str:
    """The environment variable that holds the key for an address. A known provider's key goes to that provider alone."""
    return chosen or KEY_BY_HOST.get(urlsplit(url).hostname or "", "WEFT_API_KEY")


def url_of(spec: Spec) -> str:
    """The address of a named model: the user's, or OpenAI's own. Raises UserError for what is none, or has a key in it."""
    url = spec.url or DEFAULT_URL
    try:
        parts = address_of(url, ours=True)
    except ValueError as error:
        raise UserError(f"{spec.provider}/{spec.model}: {error}") from None
    if not spec.model:
        raise UserError(f"{without_secrets(spec.text)}: name the model, as in {spec.provider}/NAME@URL")
    if parts.query:
        raise UserError("keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME")
    return url


def key_for(url: str, chosen: str = "") -> str:
    """The key for an address, from the environment; nothing where there is none."""
    variable = key_variable(url, chosen)
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        hide(key)
        raise UserError(f"the key in {variable} has a character in it that no key has (a space, or none of ASCII): set it again")
    return key


def flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise ValueError("give true or false")
    return str(value).lower() in ("true", "1")


def json_object(value: Any) -> dict[str, Any]:
    try:
        made: Any = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not a JSON object ({error})") from None
    if not isinstance(made, dict):
        raise ValueError("not a JSON object")
    secret = [name for name in fields(made) if name.lower() in ("key", "api_key", "token", "authorization")]
    if secret:
        raise ValueError(f"{secret[0]}: keys come from the environment; name the variable with key_env=NAME")
    return fields(made)


def one_of(*allowed: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"give one of {', '.join(allowed)}")
        return str(value)

    return check


@options(
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), finite),
    **dict.fromkeys(("max_tokens", "seed", "max_side"), int),
    **dict.fromkeys(("key_env", "reasoning_effort", "modalities"), str),
    images=one_of("interleaved", "list", "strip", "none"),
    own_images=one_of("user", "assistant", "images"),
    sizes=one_of("words", "size", "aspect_ratio"),
    timeout=seconds,
    fetch_images=flag,
    extra=json_object,
)
def from_spec(spec: Spec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    url = url_of(spec)
    parameters = {**chosen.pop("extra", {})}
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens", "seed", "reasoning_effort"):
        if name in chosen:
            parameters[name] = chosen.pop(name)
    own_images = chosen.pop("own_images", "user")
    takes = Takes(
        images=chosen.pop("images", "interleaved"),
        own_images="user" if own_images == "user" else "assistant",
        max_side=chosen.pop("max_side", None),
    )
    key = key_for(url, chosen.pop("key_env", ""))
    return OpenAIChat(spec.model, url, blobs, key=key, takes=takes, own_images=own_images, parameters=parameters, **chosen)
