"""Replies that come in pieces, as servers of OpenAI's chat send them (`text/event-stream`): heard as they come, then
put together to the reply that would have come at once. One that ends before its end is no reply; nor is one in a form
that is not known."""

from typing import Any, cast

import msgspec

from weft.models.endpoint import TRANSIENT, CallError, TextListener
from weft.untrusted import dict_or_empty

THOUGHTS = ("reasoning_content", "reasoning")


class UnknownStreamFormat(CallError):
    """The pieces cannot be read; at once it may do better."""


class ChatEventStream:
    def __init__(self, heard: TextListener, called: str) -> None:
        self._heard = heard
        self._called = called
        self._rest = b""
        self._done = False
        self._ended = ""
        self._odd = False
        self._said: list[str] = []
        self._thought: list[str] = []
        self._refused: list[str] = []
        self._whole: dict[str, Any] = {}
        self._error: Any = None
        self.size = 0  # of what was said, without what it was wrapped in
        heard(None)

    def feed(self, piece: bytes) -> None:
        lines = (self._rest + piece).split(b"\n")
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
            event = dict_or_empty(msgspec.json.decode(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise CallError(f"{self._called} sent a broken piece of its reply", TRANSIENT) from None
        if event.get("error"):
            self._error = event["error"]
        self._whole |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        choices: Any = event.get("choices")
        choice = dict_or_empty(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        self._ended = str(choice.get("finish_reason") or self._ended)
        self._take(dict_or_empty(choice.get("delta")))

    def _take(self, delta: dict[str, Any]) -> None:
        thought = next((delta[key] for key in THOUGHTS if isinstance(delta.get(key), str) and delta[key]), "")
        said = self._text(delta.get("content"))
        refused = self._text(delta.get("refusal"))
        self.size += len(said) + len(thought) + len(refused)
        for text, kept in ((said, self._said), (thought, self._thought), (refused, self._refused)):
            kept += [text] if text else []
        if said:
            self._heard(said)

    def _text(self, content: Any) -> str:
        """Words, plain or as a list of parts."""
        if content is None or isinstance(content, str):
            return content or ""
        if isinstance(content, list):
            parts = [dict_or_empty(part).get("text") for part in cast(list[Any], content)]
        else:
            parts = [None]
        self._odd = self._odd or not all(isinstance(part, str) for part in parts)
        return "".join(part for part in parts if isinstance(part, str))

    def build_body(self) -> dict[str, Any]:
        """The reply as it would have come at once."""
        if self._rest.strip():
            self.feed(b"\n")
        if self._error is not None:
            return {"error": self._error}
        if self._odd:
            raise UnknownStreamFormat(f"{self._called} streams its reply in a form that is not known", TRANSIENT)
        if not self._done and not self._ended:
            raise CallError(f"{self._called}: the stream was cut before its end", TRANSIENT)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._said)}
        message |= {"reasoning_content": "".join(self._thought)} if self._thought else {}
        message |= {"refusal": "".join(self._refused)} if self._refused else {}
        return {**self._whole, "choices": [{"index": 0, "message": message, "finish_reason": self._ended or "stop"}]}
