"""Converters of options: from what a user wrote to what an endpoint takes. Each raises ValueError with what it wants
instead."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from weft.untrusted import dict_or_empty


def finite_number(value: Any) -> float:
    """A number, and no infinity."""
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
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise ValueError("give true or false")
    return str(value).lower() in ("true", "1")


def json_object(value: Any) -> dict[str, Any]:
    try:
        if isinstance(value, str):
            made: Any = msgspec.json.decode(value)
        else:
            made = value
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not a JSON object ({error})") from None
    if not isinstance(made, dict):
        raise ValueError("not a JSON object")
    secret = [name for name in dict_or_empty(made) if name.lower() in ("key", "api_key", "token", "authorization")]
    if secret:
        raise ValueError(f"{secret[0]}: keys come from the environment; name the variable with key_env=NAME")
    return dict_or_empty(made)


def one_of(*allowed: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"give one of {', '.join(allowed)}")
        return str(value)

    return check


def comma_separated(value: Any) -> list[str]:
    """Words with commas between them."""
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
    else:
        words = list(value)
    return [str(word) for word in words if word]
