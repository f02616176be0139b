"""weft doctor"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say


def doctor(
    home: o.Home = o.Path(".weft"),
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Also try to reach this endpoint. Repeatable.")
    ] = None,
) -> None:
    """What is installed, what is reachable, what is missing. Sends no key and no request to a model, only opens a
    connection.

    Examples:

      weft doctor

      weft doctor --model openai-chat/NAME@http://127.0.0.1:8000/v1
    """
    import importlib.metadata
    import os
    import platform
    import socket

    from weft import __version__
    from weft.models.config import read_config
    from weft.models.http_endpoint import key_variable, parse_address
    from weft.models.registry import (
        DEFAULT_KEY_VARIABLE,
        KEY_BY_HOST,
        info_of,
        list_providers,
        load_provider,
        parse_name,
    )
    from weft.secrets import strip_url_secrets
    from weft.store.journal import Journal
    from weft.store.schema import journal_file

    say(f"weft {__version__}, Python {platform.python_version()}, {platform.system()}")
    for name in ("aiohttp", "altair", "msgspec", "numpy", "pillow", "rich", "typer", "vl-convert-python"):
        say(f"  {name} {importlib.metadata.version(name)}")
    path = journal_file(home)
    if path.exists():
        say(f"journal {path}: {len(Journal(path, readonly=True).runs())} runs, {path.stat().st_size / 1e6:.1f} MB")
    else:
        say(f"journal {path}: none yet")
    say("keys, from the environment")
    for variable in sorted({*KEY_BY_HOST.values(), DEFAULT_KEY_VARIABLE}):
        hosts = ", ".join(host for host, name in KEY_BY_HOST.items() if name == variable) or "any other address"
        say(f"  {variable}: {'set' if os.environ.get(variable) else 'not set'} (for {hosts})")
    named = read_config().get("models", {})
    specs = {name: str(entry.get("use", "")) for name, entry in named.items()} | {text: text for text in model or ()}
    bad = False
    if specs:
        say("endpoints")
    for name, text in specs.items():
        spec = parse_name(text)
        if spec.provider in list_providers():
            known = info_of(load_provider(spec.provider))
        else:
            known = None
        url = spec.url or (known.url if known is not None else "")
        if not url:
            say(f"  {strip_url_secrets(name)}: {strip_url_secrets(text)}, local")
            continue
        try:
            parts = parse_address(url)
        except ValueError as error:
            say(f"  {strip_url_secrets(name)}: {error}")
            bad = True
            continue
        variable = key_variable(url, str(named.get(name, {}).get("key_env", "")))
        try:
            with socket.create_connection(
                (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)), timeout=5
            ):
                reached = "reachable"
        except (OSError, ValueError) as error:
            reached = f"NOT reachable: {error}"
            bad = True
        key = f"key from {variable}, {'set' if os.environ.get(variable) else 'not set'}"
        say(f"  {strip_url_secrets(name)}: {parts.scheme}://{parts.netloc.rpartition('@')[2]} {reached}; {key}")
    if bad:
        raise typer.Exit(1)
