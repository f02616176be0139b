"""weft.toml: the settings shared by all commands. It is the file in the working directory, or the one that --config or
WEFT_CONFIG names.

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
    version = "step-2000"       # with this its answers are cached under the same key wherever it is served
    images = "strip"
    about = {size = "14B", open = true}     # columns of tables; changes no key and no run

    [prices."my-model"]
    in = 1.0                    # USD per million tokens
    out = 4.0
    image = 0.04                # USD per image that it makes, where images are billed

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
SECRET_NAMES = ("key", "api_key", "token")
ABOUT = "about"  # what tables say of a model; no option of it
PRICE_NAMES = ("in", "out", "image")


def find_config_file(folder: Path | None = None) -> Path | None:
    """Return the configuration file, or None if there is none.

    With a `folder`, only that folder's weft.toml counts. Else the file that --config or WEFT_CONFIG names, which must
    exist, or the weft.toml of the working directory.
    """
    named = ""
    if folder is None:
        named = os.environ.get(CONFIG_VARIABLE, "")
    if named:
        if not Path(named).is_file():
            raise UserError(f"{named}: there is no such file (named by --config or {CONFIG_VARIABLE})")
        return Path(named)
    path = (folder or Path.cwd()) / CONFIG_FILE
    if path.is_file():
        return path
    return None


def default_home() -> str:
    """Return the folder of the journal, unless a command names another."""
    return os.environ.get(HOME_VARIABLE) or DEFAULT_HOME


def read_config(folder: Path | None = None) -> dict[str, Any]:
    """Return the content of the configuration file, checked; an empty dict if there is no file.

    What it says of models for tables is under `about`, by their names, and not among their options."""
    path = find_config_file(folder)
    if path is None:
        return {}
    try:
        config = tomllib.loads(read_text_file(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None
    for name, section in config.items():
        if name not in SECTIONS or not isinstance(section, dict):
            raise UserError(f"{path}: unknown section [{name}]; weft.toml may have {', '.join(SECTIONS.values())}")
    _check_models(path, config.get("models", {}))
    config[ABOUT] = _split_about(path, config.get("models", {}))
    _check_prices(path, config.get("prices", {}))
    for name, entry in config.get("suite", {}).items():
        if not isinstance(entry, dict) or "data" not in entry:
            raise UserError(f'{path}: [suite.{name}] needs data = "FOLDER"')
    return config


def _split_about(path: Path, models: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Take `about` out of the models' entries, which are options of theirs; an entry with nothing else is no model."""
    about: dict[str, dict[str, str]] = {}
    for name, model in list(models.items()):
        words = model.pop(ABOUT, None)
        if words is None:
            continue
        if not isinstance(words, dict):
            raise UserError(f'{path}: [models.{name}] about: write a table, such as {{size = "14B", open = true}}')
        about[name] = {str(key): _format_about(value) for key, value in cast(dict[str, Any], words).items()}
        if not model:
            del models[name]
    return about


def _format_about(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _check_models(path: Path, models: Mapping[str, Any]) -> None:
    for name, model in models.items():
        if not isinstance(model, dict) or not model:
            raise UserError(f'{path}: write [models.{name}] and below it use = "..."')
        for key in cast(dict[str, Any], model):
            if key in SECRET_NAMES:
                raise UserError(
                    f'{path}: [models.{name}] {key}: keys come from the environment; write key_env = "VARIABLE" instead'
                )


def _check_prices(path: Path, prices: Mapping[str, Any]) -> None:
    for name, entry in prices.items():
        if not _is_price_entry(entry):
            raise UserError(
                f'{path}: [prices."{name}"] needs `in` and `out`, in USD per million tokens, '
                "or `image`, in USD per image, or all: numbers from 0 up"
            )


def _is_price_entry(entry: Any) -> bool:
    """Return whether an entry has both token prices, or an image price, or all three, and nothing else."""
    if not isinstance(entry, dict):
        return False
    prices = cast(dict[str, Any], entry)
    if any(name not in PRICE_NAMES or not _is_price(price) for name, price in prices.items()):
        return False
    has_token_prices = "in" in prices and "out" in prices
    has_only_image_price = set(prices) == {"image"}
    return has_token_prices or has_only_image_price


def _is_price(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
