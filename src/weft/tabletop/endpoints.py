"""What stands behind `tabletop/NAME` on the command line."""

from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.models.registry import Spec, about, finite, options
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

KNOWN = {
    "exact": (),
    "oracle": ("error", "seed", "plan"),
    "tiny": ("temperature", "seed", "weights"),
    "tiny-single": ("temperature", "seed", "weights"),
}


def _rate(value: Any) -> float:
    rate = float(value)
    if not 0 <= rate <= 1:
        raise ValueError("give a number from 0 to 1")
    return rate


def _plan(value: Any) -> str:
    if value not in ("dense", "steps"):
        raise ValueError("give dense or steps")
    return str(value)


@about(Takes(), Gives(both=False, order=False, seed=True))
@options(error=_rate, seed=int, temperature=finite, weights=Path, plan=_plan)
def from_spec(spec: Spec, blobs: Blobs, **chosen: Any) -> Endpoint:
    if spec.model not in KNOWN:
        raise UserError(f"{spec.text}: there is tabletop/exact (a judge), tabletop/oracle, tabletop/tiny and tabletop/tiny-single")
    strange = [name for name in chosen if name not in KNOWN[spec.model]]
    if strange:
        raise UserError(f"{spec.text}: unknown option {strange[0]!r}; it knows {', '.join(KNOWN[spec.model]) or 'none'}")
    if spec.model == "exact":
        from weft.tabletop.exact.endpoint import Exact

        if not spec.data:
            raise UserError("tabletop/exact is a judge: it needs the dataset it is to judge")
        return Exact(Path(spec.data), blobs)
    if spec.model == "oracle":
        from weft.tabletop.oracle import Oracle

        return Oracle(blobs, **chosen)
    from weft.tabletop.tiny.endpoint import TinyEndpoint

    return TinyEndpoint(blobs, single=spec.model == "tiny-single", **chosen)
