"""Check whether addresses can be reached: a connection is opened and closed, and nothing, not even a key, is sent."""

import queue
import socket
import threading
import time
from collections.abc import Iterable, Mapping

from weft.models.http_endpoint import parse_address

PATIENCE_S = 3.0  # for all addresses together


def check_reachable(urls: Iterable[str], patience: float = PATIENCE_S) -> Mapping[str, str]:
    """Return for each address "" if it can be reached, else why not. A slow name server is not waited for."""
    pending = list(dict.fromkeys(urls))
    results: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for url in pending:
        threading.Thread(target=_put_problem, args=(url, patience, results), daemon=True).start()
    problems: dict[str, str] = {}
    deadline = time.monotonic() + patience + 0.5
    while len(problems) < len(pending):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            break
        try:
            url, problem = results.get(timeout=remaining)
        except queue.Empty:
            break
        problems[url] = problem
    return {url: problems.get(url, f"no answer in {patience:g} s") for url in pending}


def _put_problem(url: str, patience: float, results: "queue.SimpleQueue[tuple[str, str]]") -> None:
    results.put((url, _connect(url, patience)))


def _connect(url: str, patience: float) -> str:
    """Return "" if a connection can be opened, else why not."""
    try:
        parts = parse_address(url)
        port = parts.port
        if not port:
            port = 443 if parts.scheme == "https" else 80
        with socket.create_connection((parts.hostname or "", port), timeout=patience):
            return ""
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
