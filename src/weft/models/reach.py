"""Whether addresses can be reached: a connection is opened and closed, and nothing is sent over it, no key either."""

import queue
import socket
import threading
import time
from collections.abc import Iterable, Mapping

from weft.models.http_endpoint import parse_address

PATIENCE = 3.0  # seconds, for all of them together


def check_reachable(urls: Iterable[str], patience: float = PATIENCE) -> Mapping[str, str]:
    """By address: nothing where it can be reached, else why not. A name server that does not answer is not waited
    for."""
    asked = list(dict.fromkeys(urls))
    found: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for url in asked:
        threading.Thread(target=_look, args=(url, patience, found), daemon=True).start()
    told: dict[str, str] = {}
    end = time.monotonic() + patience + 0.5
    while len(told) < len(asked) and (left := end - time.monotonic()) > 0:
        try:
            url, why = found.get(timeout=left)
        except queue.Empty:
            break
        told[url] = why
    return {url: told.get(url, f"no answer in {patience:g} s") for url in asked}


def _look(url: str, patience: float, found: "queue.SimpleQueue[tuple[str, str]]") -> None:
    found.put((url, _try(url, patience)))


def _try(url: str, patience: float) -> str:
    try:
        parts = parse_address(url)
        with socket.create_connection(
            (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)), timeout=patience
        ):
            return ""
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
