"""What stands behind `tabletop/NAME` on the command line."""

from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.models.registry import Spec
from weft.store.blobs import Blobs


def from_spec(spec: Spec, blobs: Blobs) -> Endpoint:
    if spec.model == "exact":
        from weft.tabletop.exact.endpoint import Exact

        spec.take({})
        if not spec.data:
            raise UserError("tabletop/exact is a judge: it needs the dataset it is to judge")
        return Exact(Path(spec.data), blobs)
    if spec.model == "oracle":
        from weft.tabletop.oracle import Oracle

        return Oracle(blobs, **spec.take({"error": _rate, "seed": int}))
    if spec.model in ("tiny", "tiny-single"):
        from weft.tabletop.tiny.endpoint import TinyEndpoint

        options = spec.take({"temperature": float, "seed": int, "weights": Path})
        return TinyEndpoint(blobs, single=spec.model == "tiny-single", **options)
    raise UserError(f"{spec.text}: there is tabletop/exact (a judge), tabletop/oracle, tabletop/tiny and tabletop/tiny-single")


def _rate(value: Any) -> float:
    rate = float(value)
    if not 0 <= rate <= 1:
        raise ValueError("give a number from 0 to 1")
    return rate
