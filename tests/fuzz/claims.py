"""Cards of `served/` servers, and result files of batches, that lie: a claim is never an identity of weft's own, and a
line of a batch decides about nothing but itself."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fuzz import Broken
from fuzz.spoil import ODD, spoil_bytes, spoil_json
from weft.errors import UserError, WeftError
from weft.models.endpoint import BatchService, BatchStatus, CallError
from weft.models.providers import served_card
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Gives, Request, Takes
from wires import http_models

URL = "http://127.0.0.1:9"
IDENTITIES: list[dict[str, Any]] = [
    {"provider": "local", "model": "m"},
    {"provider": "openai", "model": "gpt-4o", "url": "https://api.openai.com/v1", "parameters": {"seed": 1}},
    {"provider": "served", "model": "m", "url": f"{URL}/v1", "claim": {}, "seed": 0},
    {"provider": "python", "model": "m", "version": "1", "where": "", "options": {"seed": 3}},
]


def likely(text: str) -> dict[str, Any]:
    """The one token of an answer, for the judge that reads how likely it was."""
    token = {"token": text, "logprob": -0.1}
    return {"content": [{**token, "top_logprobs": [token]}]}


LINES: dict[str, Any] = {  # by the kind of a batch service: a line that answers, with the score 7
    "OpenAIBatches": lambda name, text: {
        "custom_id": name,
        "response": {"status_code": 200, "body": {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, "logprobs": likely(text)}]}},
    },
    "GeminiBatches": lambda name, text: {
        "key": name,
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]},
    },
}  # fmt: skip


def cards(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    """Cards as a server may send them."""
    done: Counter[str] = Counter()
    blobs = Blobs(folder / "blobs")
    fetch = served_card._request_models
    try:
        for _ in range(count):
            claim = (
                spoil_json(chance.choice(IDENTITIES), chance) if chance.random() < 0.5 else chance.choice(IDENTITIES)
            )
            card: Any = msgspec.to_builtins(served_card.ModelCard("m", {}, Takes(), Gives(), 4)) | {"identity": claim}
            if chance.random() < 0.6:
                card = spoil_json(card, chance)
            served_card._request_models = lambda url, key, card=card: {"data": [{"id": "m", "weft": card}]}
            options = chance.choice([{}, {"version": "2"}])
            try:
                endpoint = resolve_endpoint(f"served/m@{URL}", blobs, options)
            except UserError as error:
                if "\n" in str(error) or len(str(error)) > 1000:
                    raise Broken(f"an error of more than a line: {error}") from None
                done["cards: refused"] += 1
                continue
            identity = endpoint.identity
            named = {"version": "2"} if options else {"url": f"{URL}/v1"}
            if (
                endpoint.name != "served/m"
                or not {"provider": "served", "model": "m", **named}.items() <= identity.items()
            ):
                raise Broken(f"{claim} became {identity}")
            if set(identity) - {"provider", "model", "url", "version", "claim", "seed"}:
                raise Broken(f"{claim} put something beside its place: {identity}")
            msgspec.json.encode(identity)
            done["cards: taken as claims"] += 1
    finally:
        served_card._request_models = fetch
    return done


class Downloads:
    """Stands for the results of one batch: the same file, whatever it is asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def __call__(self, path: str, most: int) -> bytes:
        return self.data


async def _texts(service: BatchService, endpoint: Any, data: bytes) -> Mapping[str, str]:
    """What was answered, by name; a line that must be asked again has no text."""
    endpoint.download = Downloads(data)
    results = await service.fetch_results(BatchStatus("completed", True, ("files/one",)))
    texts: dict[str, str] = {}
    for name, result in results.items():
        try:
            reply = await service.parse_result(result, Request("text"))
        except CallError:
            continue
        texts[name] = "".join(getattr(part, "text", "") for part in reply.parts)
    return texts


def batches(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    """Result files for every provider that has batches."""
    done: Counter[str] = Counter()
    blobs = Blobs(folder / "blobs")
    for provider, model in http_models(URL).items():
        try:
            endpoint = resolve_endpoint(model, blobs)
        except WeftError:  # served/, where no server is
            continue
        service = endpoint.batch_service()
        if service is None:
            continue
        kind = type(service).__name__
        if kind not in LINES:
            raise Broken(f"nobody says what a line of {kind} is")
        for _ in range(count):
            asyncio.run(_batch(chance, service, endpoint, LINES[kind], f"{provider} batches", done))
    return done


async def _batch(
    chance: random.Random, service: BatchService, endpoint: Any, build: Any, name: str, done: Counter[str]
) -> None:
    honest = {f"n{number}": f"answer {number}" for number in range(6)}
    lines = [json.dumps(build(*pair)).encode() for pair in honest.items()]
    doubted = {"n0"}
    lines.append(json.dumps(build("n0", "another answer")).encode())
    lines.append(json.dumps(build("n1", "answer 1")).encode())  # twice the same
    for number in (2, 3):
        line = json.loads(lines[number])
        spoilt = (
            json.dumps(spoil_json(line, chance)).encode()
            if chance.random() < 0.5
            else spoil_bytes(lines[number], chance)
        )
        lines[number] = spoilt.replace(b"\n", b" ").replace(b"\r", b" ")
        doubted |= {f"n{number}"} | {name for name in honest if json.dumps(name).encode() in lines[number]}
    lines.append(
        json.dumps(
            {"custom_id": chance.choice(ODD), "key": chance.choice(ODD), "response": chance.choice(ODD)}
        ).encode()
    )
    chance.shuffle(lines)
    try:
        texts = await _texts(service, endpoint, b"\n".join(lines))
    except Exception as error:
        raise Broken(f"{name}: {type(error).__name__}: {error} for {lines}") from error
    for number, text in honest.items():
        if number not in doubted and texts.get(number) != text:
            raise Broken(f"{name}: {number} was answered, and is {texts.get(number)!r} for {lines}")
    if "n0" in texts:
        raise Broken(f"{name}: one of two answers was taken: {texts['n0']!r}")
    done[f"{name}: lines that stand"] += len(honest) - len(doubted)
    done[f"{name}: asked again"] += sum(number not in texts for number in doubted)
