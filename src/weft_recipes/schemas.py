"""Parts of JSON schemas that the recipes' prompts share."""

from typing import Any

TEXT = {"type": "string"}


def object_of(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has just these properties."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


CHECK_SCHEMA = object_of(reasoning=TEXT, asked_score={"type": "integer", "minimum": 0, "maximum": 10})
