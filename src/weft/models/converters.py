"""Converters of options: from what a user wrote to what an endpoint takes. Each raises ValueError with what it wants instead."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from weft.untrusted import fields


def finite(value: Any) -> float:
    """A number, and no infinity."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("give a finite number")
    return number


def positive(value: Any) -> float:
    number = finite(value)
    if number < 0:
        raise ValueError("give a number from 0 up")
    return number


def share(value: Any) -> float:
    number = finite(value)
    if not 0 < number <= 1:
        raise ValueError("give a number above 0, up to 1")
    return number


def seconds(value: Any) -> float:
    number = finite(value)
    if number <= 0:
        raise ValueError("give a number of seconds")
    return number


def count(value: Any) -> int:
    number = int(value)
    if number < 1:
        raise ValueError("give a number from 1 up")
    return number


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


def several(value: Any) -> list[str]:
    """Words with commas between them."""
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else list(value)
    return [str(word) for word in words if word]
