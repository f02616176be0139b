"""What stands behind `tabletop/NAME` on the command line."""

from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.models.converters import finite_number, one_of
from weft.models.endpoint import Endpoint
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

KNOWN = {
    "exact": (),
    "oracle": ("error", "seed", "plan"),
    "faulty": ("seed", "side", "stamp", "says", "rate"),
    "erring": ("sigma", "lenient", "first", "blind", "obeys", "seed"),
    "tiny": ("temperature", "seed", "weights", "images"),
    "tiny-single": ("temperature", "seed", "weights", "images"),
    "planner": ("weights",),
    "planner-und": (),
    "visualizer": ("weights", "planner", "seed"),
}
LICENCE = "Apache-2.0"  # weft's own
WITH_WEIGHTS = [name for name, options in KNOWN.items() if "weights" in options]


def _rate(value: Any) -> float:
    rate = float(value)
    if not 0 <= rate <= 1:
        raise ValueError("give a number from 0 to 1")
    return rate


def _side(value: Any) -> int:
    from weft_tabletop.make.enlarged import check_side

    return check_side(int(value))


@provider_info(Takes(), Gives(interleaved=False, ordered=False, seed=True))
@provider_options(
    error=_rate,
    rate=_rate,
    seed=int,
    temperature=finite_number,
    weights=Path,
    planner=Path,
    plan=one_of("dense", "steps"),
    images=one_of("interleaved", "strip"),
    side=_side,
    stamp=one_of("obey", "neutral"),
    says=one_of("obey", "neutral", "long", "markdown"),
    sigma=_rate,
    lenient=finite_number,
    first=_rate,
    blind=_rate,
    obeys=_rate,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """tabletop/tiny, tabletop/tiny-single, tabletop/oracle; for `weaver:` tabletop/planner and tabletop/visualizer; as
    a judge tabletop/exact: no key, no network"""
    name, at, folder = spec.model.partition("@")
    if name not in KNOWN:
        raise UserError(f"{spec.text}: there is tabletop/{', tabletop/'.join(KNOWN)} (exact and erring are judges)")
    strange = [option for option in chosen if option not in KNOWN[name]]
    if strange:
        raise UserError(f"{spec.text}: unknown option {strange[0]!r}; it knows {', '.join(KNOWN[name]) or 'none'}")
    if at:
        if name not in WITH_WEIGHTS or not folder or "weights" in chosen:
            raise UserError(
                f"{spec.text}: a folder of weights, given once, is for tabletop/{', tabletop/'.join(WITH_WEIGHTS)}"
            )
        chosen["weights"] = Path(folder)
    endpoint = _open(name, spec, blobs, chosen)
    if not chosen.get("weights"):  # its own: weights that somebody trained are theirs
        endpoint.licence = LICENCE
    return endpoint


def _open(name: str, spec: ModelSpec, blobs: Blobs, chosen: dict[str, Any]) -> Endpoint:
    if name in ("exact", "erring"):
        from weft_tabletop.exact.endpoint import Exact

        data = Path(spec.data) if spec.data else None
        if name == "exact":
            return Exact(data, blobs)
        from weft_tabletop.erring import Erring

        return Erring(data, blobs, **chosen)
    if name == "faulty":
        from weft_tabletop.faulty import Faulty

        return Faulty(blobs, **chosen)
    if name == "oracle":
        from weft_tabletop.oracle import Oracle

        return Oracle(blobs, **chosen)
    if name in ("planner", "planner-und", "visualizer"):
        from weft_tabletop.weaver.endpoint import PlannerEndpoint, VisualizerEndpoint
        from weft_tabletop.weaver.files import SHIPPED, UNTUNED_FILE

        if name == "visualizer":
            return VisualizerEndpoint(blobs, **chosen)
        if name == "planner-und":
            return PlannerEndpoint(blobs, name=f"tabletop/{name}", weights=SHIPPED / UNTUNED_FILE)
        return PlannerEndpoint(blobs, name=f"tabletop/{name}", **chosen)
    from weft_tabletop.tiny.endpoint import TinyEndpoint

    return TinyEndpoint(blobs, single=name == "tiny-single", **chosen)
