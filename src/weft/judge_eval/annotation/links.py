"""The links that annotators get: one token each, in a file that only its owner can read. Tokens are in no journal, no
log and no export."""

import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import write_file
from weft.untrusted import read_bytes_file

FILE = "annotation-links.json"


class AnnotatorLinks(Struct, frozen=True):
    """The links of one study."""

    port: int  # of the server; 0 until it was started once
    tokens: dict[str, str]  # by annotator


def read(home: Path) -> dict[str, AnnotatorLinks]:
    """The links of all studies in a home, by study."""
    path = home / FILE
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(read_bytes_file(path), type=dict[str, AnnotatorLinks])
    except msgspec.MsgspecError as error:
        raise UserError(f"{path} cannot be read: {error}; remove it to get new links") from None


def tokens_of(home: Path, study: str, annotators: list[str]) -> AnnotatorLinks:
    """The stored port and tokens of a study, with new tokens for annotators who have none."""
    links = read(home).get(study, AnnotatorLinks(0, {}))
    tokens = {annotator: links.tokens.get(annotator) or secrets.token_hex(16) for annotator in annotators}
    return AnnotatorLinks(links.port, tokens)


def keep(home: Path, study: str, links: AnnotatorLinks) -> None:
    """Store the links of a study. `write_file` makes the file readable for its owner alone."""
    home.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.encode({**read(home), study: links})
    write_file(home / FILE, msgspec.json.format(encoded, indent=2), durable=True)
