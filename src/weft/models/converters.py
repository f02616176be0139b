"""Converters of options: from what a user wrote to the value that an endpoint takes.

Each raises ValueError with what to give instead. They are named like types, because providers declare options with
them: `provider_options(temperature=non_negative_number, seed=int)`.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from weft.untrusted import dict_or_empty

SECRET_NAMES = ("key", "api_key", "token", "authorization")


def finite_number(value: Any) -> float:
    """Return a float that is neither infinite nor NaN."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("give a finite number")
    return number


def non_negative_number(value: Any) -> float:
    number = finite_number(value)
    if number < 0:
        raise ValueError("give a number from 0 up")
    return number


def fraction(value: Any) -> float:
    number = finite_number(value)
    if not 0 < number <= 1:
        raise ValueError("give a number above 0, up to 1")
    return number


def positive_seconds(value: Any) -> float:
    number = finite_number(value)
    if number <= 0:
        raise ValueError("give a number of seconds")
    return number


def positive_int(value: Any) -> int:
    number = int(value)
    if number < 1:
        raise ValueError("give a number from 1 up")
    return number


def boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise ValueError("give true or false")
    return text in ("true", "1")


def json_object(value: Any) -> dict[str, Any]:
    """Return a JSON object, from JSON text or as it is. Fields that would hold a key are refused."""
    content = value
    if isinstance(value, str):
        try:
            content = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ValueError(f"not a JSON object ({error})") from None
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    fields = dict_or_empty(content)
    for name in fields:
        if name.lower() in SECRET_NAMES:
            raise ValueError(f"{name}: keys come from the environment; name the variable with key_env=NAME")
    return fields


def one_of(*allowed: str) -> Callable[[Any], str]:
    """Return a converter that accepts only these words."""

    def check(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"give one of {', '.join(allowed)}")
        return str(value)

    return check


def comma_separated(value: Any) -> list[str]:
    """Return the words of a comma-separated text, or the items of a list."""
    words: list[Any] = list(value)
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
    return [str(word) for word in words if word]
