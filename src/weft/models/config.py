"""weft.toml: what is the same from one command to the next. It lies beside the work, or is named by --config, or by
WEFT_CONFIG.

    [defaults]
    judge = "gpt-judge"         # any option of any command, under its long name
    home = "/data/weft"
    [defaults.run]              # of one command
    concurrency = 16
    [defaults.weave]            # of one benchmark, its own options included
    data = "data/weave"
    history = "dialogue"

    [models.bagel]
    use = "openai-chat/ByteDance-Seed/BAGEL-7B-MoT@http://127.0.0.1:8000/v1"
    version = "step-2000"       # with this its answers are kept wherever it is served
    images = "strip"

    [prices."my-model"]
    in = 1.0                    # USD per million tokens
    out = 4.0
    image = 0.04                # USD per picture that it makes, where that is what is paid for

    [suite.weave]               # what `weft suite` runs: a benchmark, with its options
    data = "data/weave"

It never holds keys: those come from the environment alone."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.untrusted import read_text_file

CONFIG_FILE = "weft.toml"
CONFIG_VARIABLE = "WEFT_CONFIG"
HOME_VARIABLE = "WEFT_HOME"
DEFAULT_HOME = ".weft"
SECTIONS = {
    "defaults": "[defaults]",
    "models": "[models.NAME]",
    "prices": '[prices."NAME"]',
    "suite": "[suite.BENCHMARK]",
}
SECRET = ("key", "api_key", "token")


def find_config_file(folder: Path | None = None) -> Path | None:
    """The file that counts: the one that was named, which must be there, else the one beside the work."""
    if folder is None:
        named = os.environ.get(CONFIG_VARIABLE, "")
    else:
        named = ""
    if named:
        if not Path(named).is_file():
            raise UserError(f"{named}: there is no such file (named by --config or {CONFIG_VARIABLE})")
        return Path(named)
    path = (folder or Path.cwd()) / CONFIG_FILE
    if path.is_file():
        return path
    return None


def default_home() -> str:
    """Where the journal is, unless somebody says otherwise."""
    return os.environ.get(HOME_VARIABLE) or DEFAULT_HOME


def read_config(folder: Path | None = None) -> dict[str, Any]:
    path = find_config_file(folder)
    if path is None:
        return {}
    try:
        found = tomllib.loads(read_text_file(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None
    for name, section in found.items():
        if name not in SECTIONS or not isinstance(section, dict):
            raise UserError(f"{path}: unknown section [{name}]; weft.toml may have {', '.join(SECTIONS.values())}")
    _check_models(path, found.get("models", {}))
    _check_prices(path, found.get("prices", {}))
    for name, entry in found.get("suite", {}).items():
        if isinstance(entry, dict) and "data" not in entry:
            raise UserError(f'{path}: [suite.{name}] needs data = "FOLDER"')
    return found


def _check_models(path: Path, models: Mapping[str, Any]) -> None:
    for name, model in models.items():
        if not isinstance(model, dict) or not model:
            raise UserError(f'{path}: write [models.{name}] and below it use = "..."')
        secret = [key for key in cast(dict[str, Any], model) if key in SECRET]
        if secret:
            raise UserError(
                f'{path}: [models.{name}] {secret[0]}: keys come from the environment; write key_env = "VARIABLE" instead'
            )


def _check_prices(path: Path, prices: Mapping[str, Any]) -> None:
    for name, price in prices.items():
        sides = cast(dict[str, Any], price) if isinstance(price, dict) else {}
        strange = [side for side in sides if side not in ("in", "out", "image")]
        paired = all(_is_price(sides.get(side)) for side in ("in", "out")) or (
            not {"in", "out"} & set(sides) and "image" in sides
        )
        if strange or not paired or not _is_price(sides.get("image", 0)):
            what = "`in` and `out`, in USD per million tokens, or `image`, in USD for each picture, or all: numbers from 0 up"
            raise UserError(f'{path}: [prices."{name}"] needs {what}')


def _is_price(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
