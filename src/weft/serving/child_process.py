"""`weft run --replicas N`: the same server in a process beside this one, for as long as a run lasts."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Mapping
from typing import Any

from weft.errors import UserError
from weft.secrets import hide
from weft.serving.start import TOKEN_VARIABLE

KEY = "WEFT_REPLICAS_TOKEN"


@contextlib.contextmanager
def serve_in_child(
    model: str, options: Mapping[str, Any], replicas: int, *, home: str, more: Mapping[str, Any]
) -> Generator[tuple[str, dict[str, Any]]]:
    """A model that is served, as it is named and with the options that it is then reached by. It ends when this does,
    however that ends."""
    token = secrets.token_urlsafe(24)
    hide(token)
    os.environ[KEY] = token
    command = [
        sys.executable,
        "-m",
        "weft",
        "serve",
        model,
        "--replicas",
        str(replicas),
        "--port",
        "0",
        "--home",
        home,
        "--child",
    ]
    for name, value in options.items():
        command += ["--model-opt", f"{name}={value}"]
    for name, value in more.items():
        command += [name, str(value)] if value is not None else []
    process = subprocess.Popen(
        command,
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
        told = json.loads(line)
        yield f"served/{told['name']}@{told['url']}", {"key_env": KEY}
    finally:
        os.environ.pop(KEY, None)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
