"""OpenAI's own document, for requests to be held against; tests that need it are skipped where it is not."""

import json
from pathlib import Path
from typing import Any

import pytest

OPENAPI = Path(__file__).parents[2] / "shared" / "data" / "openai" / "openapi.json"


def validator(name: str) -> Any:
    """Of one of its schemas, with `nullable` read as a union with null and `oneOf` as `anyOf` (as its own clients
    need)."""
    jsonschema = pytest.importorskip("jsonschema")
    if not OPENAPI.is_file():
        pytest.skip(f"OpenAI's OpenAPI document is not here ({OPENAPI})")
    document = _patched(json.loads(OPENAPI.read_text()))
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )


def _patched(node: Any) -> Any:
    if isinstance(node, list):
        return [_patched(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {
        ("anyOf" if key == "oneOf" else key): _patched(one)
        for key, one in node.items()
        if key not in ("discriminator", "nullable")
    }
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") else made


def check(name: str, thing: Any) -> None:
    """Raises AssertionError in one line, not in ten thousand."""
    from jsonschema.exceptions import best_match, relevance

    wrong = best_match(validator(name).iter_errors(thing), key=relevance)
    if wrong is not None:
        deeper = sorted(wrong.context or [], key=lambda one: -len(one.absolute_path))[:3]
        raise AssertionError(f"{name}: {[(list(one.absolute_path), one.message[:200]) for one in (wrong, *deeper)]}")
