"""Sampling settings that one call may bring along, for models that take them call by call.

A run never uses them: there, all settings are the model's own and stand in its identity. They are for clients of
`weft serve`, which send a temperature or a limit of tokens with every request.
"""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from weft.models.endpoint import EndpointReply
from weft.types import Message, Request


class CallSettings(Struct, frozen=True):
    """Settings of one call; None: the model's own. The limit of tokens is one of texts: an image has a fixed number."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


OWN_SETTINGS = CallSettings()


@runtime_checkable
class AdjustableEndpoint(Protocol):
    """An endpoint whose calls may have settings of their own."""

    request_settings: tuple[str, ...]  # the fields of CallSettings that it can use

    async def send_with(
        self, messages: tuple[Message, ...], request: Request, settings: CallSettings
    ) -> EndpointReply: ...
