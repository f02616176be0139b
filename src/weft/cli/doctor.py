"""weft doctor"""

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption
from weft.cli.terminal import say

PACKAGES = ("aiohttp", "altair", "msgspec", "numpy", "pillow", "rich", "typer", "vl-convert-python")
CONNECT_TIMEOUT_S = 5
DEFAULT_PORTS = {"https": 443, "http": 80}


def doctor(
    home: HomeOption = DEFAULT_HOME,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="Also try to reach this endpoint. Repeatable."),
    ] = None,
) -> None:
    """Check what is installed, what can be reached, what is missing.

    Only opens a connection to each endpoint: sends no key and no request.

    Examples:

      weft doctor

      weft doctor --model openai-chat/NAME@http://127.0.0.1:8000/v1
    """
    from weft.models.config import read_config

    _print_versions()
    _print_journal(home)
    _print_keys()
    configured = read_config().get("models", {})
    endpoints = {name: str(entry.get("use", "")) for name, entry in configured.items()}
    endpoints |= {text: text for text in model or ()}
    if endpoints:
        say("endpoints")
    all_fine = True
    for name, text in endpoints.items():
        key_variable = str(configured.get(name, {}).get("key_env", ""))
        all_fine = _check_endpoint(name, text, key_variable) and all_fine
    if not all_fine:
        raise typer.Exit(1)


def _print_versions() -> None:
    import importlib.metadata
    import platform

    from weft import __version__

    say(f"weft {__version__}, Python {platform.python_version()}, {platform.system()}")
    for name in PACKAGES:
        say(f"  {name} {importlib.metadata.version(name)}")


def _print_journal(home: Path) -> None:
    from weft.store.journal import Journal
    from weft.store.schema import journal_file

    path = journal_file(home)
    if path.exists():
        count = len(Journal(path, readonly=True).runs())
        say(f"journal {path}: {count} runs, {path.stat().st_size / 1e6:.1f} MB")
    else:
        say(f"journal {path}: none yet")


def _print_keys() -> None:
    from weft.models.registry import DEFAULT_KEY_VARIABLE, KEY_BY_HOST

    say("keys, from the environment")
    for variable in sorted({*KEY_BY_HOST.values(), DEFAULT_KEY_VARIABLE}):
        hosts = [host for host, name in KEY_BY_HOST.items() if name == variable]
        say(f"  {variable}: {describe_variable(variable)} (for {', '.join(hosts) or 'any other address'})")


def describe_variable(name: str) -> str:
    """Say whether an environment variable is set; its value is never shown."""
    import os

    if os.environ.get(name):
        return "set"
    return "not set"


def _check_endpoint(name: str, text: str, key_env: str) -> bool:
    """Print whether an endpoint can be reached. Returns False if it cannot, or if its address is wrong."""
    from weft.models.http_endpoint import key_variable, parse_address
    from weft.secrets import strip_url_secrets

    shown_name = strip_url_secrets(name)
    url = _find_url(text)
    if not url:
        say(f"  {shown_name}: {strip_url_secrets(text)}, local")
        return True
    try:
        address = parse_address(url)
    except ValueError as error:
        say(f"  {shown_name}: {error}")
        return False
    problem = _connect(address)
    state = "reachable"
    if problem:
        state = f"NOT reachable: {problem}"
    variable = key_variable(url, key_env)
    host = address.netloc.rpartition("@")[2]
    say(f"  {shown_name}: {address.scheme}://{host} {state}; key from {variable}, {describe_variable(variable)}")
    return not problem


def _find_url(text: str) -> str:
    """Return the address that a model's name means; nothing for a local model."""
    from weft.models.registry import info_of, list_providers, load_provider, parse_name

    spec = parse_name(text)
    if spec.url:
        return spec.url
    if spec.provider not in list_providers():
        return ""
    info = info_of(load_provider(spec.provider))
    if info is None:
        return ""
    return info.url


def _connect(address: Any) -> str:
    """Open a connection and close it; return the problem, or nothing."""
    import socket

    try:
        port = address.port or DEFAULT_PORTS.get(address.scheme, 80)
        with socket.create_connection((address.hostname or "", port), timeout=CONNECT_TIMEOUT_S):
            return ""
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
