"""Every provider that speaks HTTP, found through the registry, named at an address of ours."""

import re

from weft.models.registry import list_providers


def http_models(url: str) -> dict[str, str]:
    """By provider, a model of it at `url` (without a path): its description in the registry says how it is named."""
    made: dict[str, str] = {}
    for name, (_, what) in list_providers().items():
        found = re.search(rf"\b{re.escape(name)}/(?:NAME@URL|(https?://\S+))", what)
        if found is None:
            continue
        path = re.sub(r"^https?://[^/]+", "", found.group(1) or "")
        made[name] = f"{name}/{url}{path}" if found.group(1) else f"{name}/m@{url}/v1"
    return made
