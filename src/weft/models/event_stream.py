"""Streamed replies of OpenAI's chat API (`text/event-stream`).

The text is passed to a listener piece by piece, then assembled into the body that an unstreamed reply would have had. A
stream that is cut before its end is an error, and so is one in an unknown format.
"""

from typing import Any, cast

import msgspec

from weft.models.endpoint import TRANSIENT, CallError, TextListener
from weft.untrusted import dict_or_empty

THOUGHT_KEYS = ("reasoning_content", "reasoning")


class UnknownStreamFormat(CallError):
    """The stream cannot be read; the same request without streaming may work."""


class ChatEventStream:
    """Assembles one streamed chat reply. `endpoint_name` names the server in errors."""

    def __init__(self, listener: TextListener, endpoint_name: str) -> None:
        self._listener = listener
        self._endpoint_name = endpoint_name
        self._partial_line = b""
        self._is_done = False
        self._finish_reason = ""
        self._has_unknown_content = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._fields: dict[str, Any] = {}  # of the whole reply: model and usage
        self._error: Any = None
        self.size = 0  # characters of text, thoughts and refusals, without the events around them
        listener(None)

    def feed(self, piece: bytes) -> None:
        """Read a piece of the stream; it may end anywhere in a line."""
        lines = (self._partial_line + piece).split(b"\n")
        self._partial_line = lines.pop()
        for line in lines:
            self._read_line(line.strip())

    def build_body(self) -> dict[str, Any]:
        """Return the body that an unstreamed reply would have had. Raises CallError for a cut or unknown stream."""
        if self._partial_line.strip():
            self.feed(b"\n")
        if self._error is not None:
            return {"error": self._error}
        if self._has_unknown_content:
            raise UnknownStreamFormat(f"{self._endpoint_name} streams its reply in an unknown format", TRANSIENT)
        if not self._is_done and not self._finish_reason:
            raise CallError(f"{self._endpoint_name}: the stream was cut before its end", TRANSIENT)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts)}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._refusals:
            message["refusal"] = "".join(self._refusals)
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason or "stop"}
        return {**self._fields, "choices": [choice]}

    def _read_line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self._is_done = True
            return
        try:
            event = dict_or_empty(msgspec.json.decode(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise CallError(f"{self._endpoint_name} sent a broken piece of its reply", TRANSIENT) from None
        if event.get("error"):
            self._error = event["error"]
        for key in ("model", "usage"):
            if event.get(key):
                self._fields[key] = event[key]
        choices: Any = event.get("choices")
        if isinstance(choices, list) and choices:
            choice = dict_or_empty(cast(list[Any], choices)[0])
            self._finish_reason = str(choice.get("finish_reason") or self._finish_reason)
            self._read_delta(dict_or_empty(choice.get("delta")))

    def _read_delta(self, delta: dict[str, Any]) -> None:
        thought = ""
        for key in THOUGHT_KEYS:
            value = delta.get(key)
            if isinstance(value, str) and value:
                thought = value
                break
        text = self._read_content(delta.get("content"))
        refusal = self._read_content(delta.get("refusal"))
        self.size += len(text) + len(thought) + len(refusal)
        if thought:
            self._thoughts.append(thought)
        if refusal:
            self._refusals.append(refusal)
        if text:
            self._texts.append(text)
            self._listener(text)

    def _read_content(self, content: Any) -> str:
        """Return the text of a string or of a list of parts; anything else is noted as unknown."""
        if content is None or isinstance(content, str):
            return content or ""
        if not isinstance(content, list):
            self._has_unknown_content = True
            return ""
        texts: list[str] = []
        for part in cast(list[Any], content):
            text = dict_or_empty(part).get("text")
            if isinstance(text, str):
                texts.append(text)
            else:
                self._has_unknown_content = True
        return "".join(texts)
