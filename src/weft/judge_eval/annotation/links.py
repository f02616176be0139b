"""The links that raters get: a token each, in a file that its owner alone can read. They are in no journal, no log and
no export."""

import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import write_file
from weft.untrusted import read_bytes_file

FILE = "rating-links.json"


class AnnotatorLinks(Struct, frozen=True):
    """Of one study: the port that its links have, and the raters' tokens."""

    port: int
    tokens: dict[str, str]


def read(home: Path) -> dict[str, AnnotatorLinks]:
    path = home / FILE
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(read_bytes_file(path), type=dict[str, AnnotatorLinks])
    except msgspec.MsgspecError as error:
        raise UserError(f"{path} cannot be read: {error}; remove it for new links") from None


def tokens_of(home: Path, study: str, raters: list[str]) -> AnnotatorLinks:
    """The same as before, where there was a before. The port is 0 until somebody listens."""
    found = read(home).get(study, AnnotatorLinks(0, {}))
    return AnnotatorLinks(found.port, {rater: found.tokens.get(rater) or secrets.token_hex(16) for rater in raters})


def keep(home: Path, study: str, links: AnnotatorLinks) -> None:
    """Readable for its owner alone: `write_file` makes it so."""
    home.mkdir(parents=True, exist_ok=True)
    write_file(
        home / FILE, msgspec.json.format(msgspec.json.encode({**read(home), study: links}), indent=2), durable=True
    )
