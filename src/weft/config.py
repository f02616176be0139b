"""`weft.toml`: named models with their options, and own prices. Never keys: those come from the environment alone.

[models.bagel]
use = "openai-chat/ByteDance-Seed/BAGEL-7B-MoT@http://127.0.0.1:8000/v1"
images = "strip"

[prices."my-model"]
in = 1.0        # USD per million tokens
out = 4.0
"""

import tomllib
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError

FILE = "weft.toml"
SECTIONS = ("models", "prices")


def read_config(folder: Path | None = None) -> dict[str, Any]:
    path = (folder or Path.cwd()) / FILE
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}") from None
    for name, section in found.items():
        if name not in SECTIONS or not isinstance(section, dict):
            raise UserError(f"{path}: unknown section [{name}]; weft.toml may have {', '.join(f'[{one}.NAME]' for one in SECTIONS)}")
    for name, model in found.get("models", {}).items():
        if not isinstance(model, dict) or not model:
            raise UserError(f'{path}: write [models.{name}] and below it use = "..."')
        secret = [key for key in cast(dict[str, Any], model) if key in ("key", "api_key", "token")]
        if secret:
            raise UserError(f'{path}: [models.{name}] {secret[0]}: keys come from the environment; write key_env = "VARIABLE" instead')
    for name, price in found.get("prices", {}).items():
        sides = cast(dict[str, Any], price) if isinstance(price, dict) else {}
        if not all(isinstance(sides.get(side), (int, float)) for side in ("in", "out")):
            raise UserError(f'{path}: [prices."{name}"] needs `in` and `out`, in USD per million tokens')
    return found
