"""What answers are kept under. Where a model is served is a part of that only as long as it has no name and version of its own.

`localhost` and `127.0.0.1` are one address. A model with a version (weft.toml, `--model-opt version=`) keeps its answers at any address:
its user says which weights they are. Under which older identities the same answers may lie is told by `Endpoint.formerly`.
"""

from typing import Any
from urllib.parse import urlsplit

from weft.errors import UserError
from weft.models.endpoint import Endpoint

PLACES = ("url", "urls")


def one_address(url: str) -> str:
    """An address as it is kept."""
    parts = urlsplit(url)
    if (parts.hostname or "") != "localhost":
        return url
    return parts._replace(netloc=parts.netloc.lower().replace("localhost", "127.0.0.1")).geturl()


def settle(endpoint: Endpoint) -> Endpoint:
    """Its addresses as they are kept; answers that were kept under another spelling are found as well."""
    told = endpoint.identity
    kept: dict[str, Any] = {**told}
    if isinstance(told.get("url"), str):
        kept["url"] = one_address(told["url"])
    if isinstance(told.get("urls"), list):
        kept["urls"] = [one_address(str(url)) for url in told["urls"]]
    if kept != dict(told):
        endpoint.identity, endpoint.formerly = kept, (told, *endpoint.formerly)
    return endpoint


def own(endpoint: Endpoint, called: str, version: str) -> Endpoint:
    """A model that has a version, and maybe a name, of its own: where it is served is no part of what it is."""
    kept = {key: value for key, value in endpoint.identity.items() if key not in PLACES}
    if "urls" in endpoint.identity:  # it has no name but its address
        if not called:
            raise UserError(f"{endpoint.name}: a version needs a name as well: --model-opt name=NAME, or [models.NAME] in weft.toml")
        kept["model"] = called
    endpoint.identity = {**kept, "version": version, **({"called": called} if called else {})}
    endpoint.formerly = ()
    return endpoint
