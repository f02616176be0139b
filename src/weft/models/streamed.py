"""Replies that come in pieces, as servers of OpenAI's chat send them (`text/event-stream`): heard as they come, then put together to the
reply that would have come at once. One that ends before its end is no reply."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from weft.models.endpoint import TRANSIENT, CallError
from weft.models.http import fields

Heard = Callable[[str], None]  # who wants to know all that was said so far, whenever something that is written in tags may have ended


class Stream:
    def __init__(self, heard: Heard, called: str) -> None:
        self._heard, self._called = heard, called
        self._rest, self._done, self._ended = b"", False, ""
        self._said: list[str] = []
        self._thought: list[str] = []
        self._refused: list[str] = []
        self._whole: dict[str, Any] = {}
        self._error: Any = None

    def feed(self, piece: bytes | bytearray) -> None:
        lines = (self._rest + bytes(piece)).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line.strip())

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self._done = True
            return
        try:
            event = fields(msgspec.json.decode(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise CallError(f"{self._called} sent a broken piece of its reply", TRANSIENT) from None
        if event.get("error"):
            self._error = event["error"]
        self._whole |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        choices: Any = event.get("choices")
        choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        delta = fields(choice.get("delta"))
        for key, kept in (("content", self._said), ("reasoning_content", self._thought), ("refusal", self._refused)):
            if isinstance(delta.get(key), str):
                kept.append(delta[key])
        self._ended = str(choice.get("finish_reason") or self._ended)
        if self._said and ">" in str(delta.get("content") or ""):
            self._heard("".join(self._said))

    def body(self) -> dict[str, Any]:
        """The reply as it would have come at once."""
        if self._rest.strip():
            self.feed(b"\n")
        if self._error is not None:
            return {"error": self._error}
        if not self._done and not self._ended:
            raise CallError(f"{self._called}: the stream was cut before its end", TRANSIENT)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._said)}
        message |= {"reasoning_content": "".join(self._thought)} if self._thought else {}
        message |= {"refusal": "".join(self._refused)} if self._refused else {}
        return {**self._whole, "choices": [{"index": 0, "message": message, "finish_reason": self._ended or "stop"}]}
