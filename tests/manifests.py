"""A manifest of a run that asks for nothing in particular."""

from typing import Any

import msgspec

from weft.store.manifest import Manifest, parse_manifest


def manifest(name: str = "m", model: dict[str, Any] | None = None, **more: Any) -> Manifest:
    """`model` is what is said of it besides its name; `more` is put in the place of whole fields."""
    usual: dict[str, Any] = {
        "weft": "1",
        "benchmark": {"name": "b", "version": "1"},
        "dataset": {"name": "d", "digest": "0" * 64},
        "model": {"name": name, "provider": "local", "model": name, **(model or {})},
        "judge": {"name": "j"},
        "prompts": {"source": "weft", "digest": "1" * 64},
        "options": {},
        "option_labels": ["partial"],
        "strategy": "none",
        "judge_repeats": 1,
        "limit": None,
        "where": {},
    }
    return parse_manifest(msgspec.json.encode({**usual, **more}))
