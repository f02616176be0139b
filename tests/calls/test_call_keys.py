"""Requests that differ in what a model is told never share an answer: not in the cache, not in a batch."""

from typing import Any

import pytest
from msgspec.structs import replace

from weft.calls.caller import build_request
from weft.models.batch_api import _request_name  # pyright: ignore[reportPrivateUsage]
from weft.types import Message, Request, Text

MESSAGES = (Message("user", (Text("Paint a red square."),)),)
OTHERS: dict[str, Any] = {  # by field: another value
    "modality": "image",
    "schema": {"type": "object"},
    "draw": 1,
    "size": (64, 64),
}
NOT_TOLD = {"turn_ref", "question"}  # what is asked in other words, for programs and error messages


def test_each_field_of_a_request_is_told_the_model_or_is_known_not_to_be():
    assert {*OTHERS, *NOT_TOLD} == set(Request.__struct_fields__), "say which of the two a new field is, and key it"


@pytest.mark.parametrize("field", OTHERS)
def test_each_field_that_a_model_is_told_is_in_the_cache_key_and_in_a_batch_lines_name(field: str):
    other = replace(Request(), **{field: OTHERS[field]})
    identity = {"provider": "p", "model": "m"}
    assert build_request(identity, MESSAGES, other)[1] != build_request(identity, MESSAGES, Request())[1]
    assert _request_name(MESSAGES, other) != _request_name(MESSAGES, Request())
