"""`weft run --replicas N`: run `weft serve` in a child process for as long as a run lasts."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Mapping
from typing import Any

from weft.errors import UserError
from weft.models.providers.served_card import own_server
from weft.secrets import hide
from weft.serving.start import TOKEN_VARIABLE

CLIENT_TOKEN_VARIABLE = "WEFT_REPLICAS_TOKEN"
SHUTDOWN_GRACE_S = 30


@contextlib.contextmanager
def serve_in_child(
    model: str, options: Mapping[str, Any], replicas: int, *, home: str, more: Mapping[str, Any]
) -> Generator[tuple[str, dict[str, Any]]]:
    """Serve a model in a child process; yield the name and the options to reach it by.

    `more` are further options of `weft serve`; those that are None are left out. The child ends with this process,
    however that ends. Raises UserError where the model cannot be served.
    """
    token = secrets.token_urlsafe(24)
    hide(token)
    os.environ[CLIENT_TOKEN_VARIABLE] = token
    process = subprocess.Popen(
        _build_command(model, options, replicas, home, more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, TOKEN_VARIABLE: token},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise UserError(f"{model} could not be served (see above)")
        server = json.loads(line)
        with own_server(server["url"]):
            yield f"served/{server['name']}@{server['url']}", {"key_env": CLIENT_TOKEN_VARIABLE}
    finally:
        os.environ.pop(CLIENT_TOKEN_VARIABLE, None)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(SHUTDOWN_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _build_command(
    model: str, options: Mapping[str, Any], replicas: int, home: str, more: Mapping[str, Any]
) -> list[str]:
    command = [sys.executable, "-m", "weft", "serve", model]
    command += ["--replicas", str(replicas), "--port", "0", "--home", home, "--child"]
    for name, value in options.items():
        command += ["--model-opt", f"{name}={value}"]
    for name, value in more.items():
        if value is not None:
            command += [name, str(value)]
    return command
