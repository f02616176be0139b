"""Pipelines of diffusers: diffusers/REPOSITORY or diffusers/FOLDER.

A list of pictures means references to one of these classes, a batch to another, and is ignored by a third; without a
negative prompt some leave their guidance out and say nothing. So what a class does is in a table, and a class that is
not in it is refused. Pipelines that make a picture from words can work on several requests at once (`batch=N`); those
that edit cannot."""

from importlib.util import find_spec
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.models.converters import finite_number, json_object, one_of, positive_int
from weft.models.local.endpoint import LocalEndpoint
from weft.models.local.hf import LARGEST, LOCAL_OPTIONS, engine_loader, override_takes, resolve_weights
from weft.models.local.weights import import_extra, library_versions
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

DRAWS = Gives(text=False, interleaved=False, ordered=False, seed=True, json=False, sizes="pixels")


class PipelineTraits(Struct, frozen=True):
    """What a class does with what it is given."""

    pictures: int = 0  # how many it takes
    least: int = 0  # how many it needs
    named: str = "image"  # the argument that they go in
    one: bool = False  # whether a list of them would be taken for a batch
    guidance: str = "guidance_scale"  # the argument
    negative: str | None = None  # without which guidance is left out
    negates: bool = True  # whether a negative prompt changes anything
    # which of its tokenizers reads the words, and of how many tokens they may be
    reads: tuple[str, int] = ("tokenizer", 77)
    # whether the shape of a picture must be told, or it would not be that of the one that is edited
    follows: bool = False
    sized: bool = True  # whether the size of a picture can be chosen
    marks: bool = False  # whether its words must say where pictures stand


QWEN = PipelineTraits(guidance="true_cfg_scale", negative=" ", reads=("tokenizer", 512))
EDITS = replace(QWEN, reads=("", 0))  # these cut nothing
PIPELINES: dict[str, PipelineTraits] = {
    "QwenImagePipeline": QWEN,
    "QwenImageEditPipeline": replace(EDITS, pictures=1, least=1, one=True),
    "QwenImageEditPlusPipeline": replace(EDITS, pictures=3, least=1),
    "FluxPipeline": PipelineTraits(reads=("tokenizer_2", 512), negates=False),
    "FluxKontextPipeline": PipelineTraits(
        pictures=1, one=True, follows=True, reads=("tokenizer_2", 512), negates=False
    ),
    "OmniGenPipeline": PipelineTraits(pictures=3, named="input_images", marks=True, reads=("", 0), negates=False),
    "StableDiffusionPipeline": PipelineTraits(),
    "StableDiffusionXLPipeline": PipelineTraits(),
    "StableDiffusion3Pipeline": PipelineTraits(reads=("tokenizer_3", 256)),
    "StableDiffusionInstructPix2PixPipeline": PipelineTraits(pictures=1, least=1, one=True, sized=False),
}


@provider_info(Takes(images="list", own_images="user"), DRAWS, extra="local", key="")
@provider_options(
    **{name: convert for name, convert in LOCAL_OPTIONS.items() if name != "trust_remote_code"},
    steps=positive_int,
    guidance=finite_number,
    negative_prompt=str,
    width=positive_int,
    height=positive_int,
    offload=one_of("none", "model", "sequential"),
    extra=json_object,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> LocalEndpoint:
    weights, name = resolve_weights(spec, "model_index.json", blobs, chosen)
    kind = weights.config.get("_class_name")
    if isinstance(kind, str):
        pipe = PIPELINES.get(kind)
    else:
        pipe = None
    if pipe is None:
        raise UserError(_unknown(name, kind))
    device, dtype = import_extra("weft.models.local.run.device").resolve_device(
        chosen.pop("device", ""), chosen.pop("dtype", "")
    )
    batch = chosen.pop("batch", 1)
    seed = chosen.pop("seed", 0)
    if batch > 1 and pipe.pictures:
        raise UserError(
            f"{name}: {kind} edits one picture at a time: batch={batch} is for those that draw from words alone"
        )
    if ("width" in chosen) != ("height" in chosen):
        raise UserError(f"{name}: give both width and height, or none")
    if "width" in chosen and not pipe.sized:
        raise UserError(f"{name}: {kind} makes pictures of the size of what it edits")
    if "negative_prompt" in chosen and not pipe.negates and "true_cfg_scale" not in chosen.get("extra", {}):
        raise UserError(f"{name}: a negative prompt changes nothing in {kind}")
    useless = [option for option in ("max_side", "most_images") if option in chosen and not pipe.pictures]
    if useless:
        raise UserError(f"{name}: {kind} is shown no pictures: {useless[0]} is of no use")
    if pipe.pictures:
        few = Takes("list", "user", LARGEST, pipe.pictures)
    else:
        few = Takes("none", "user")
    takes = override_takes(few, chosen)
    if takes.max_images and pipe.one and takes.max_images > 1:
        raise UserError(f"{name}: {kind} takes one picture; more would be taken for a batch of requests")
    offload = chosen.pop("offload", "none")
    identity = {
        "provider": "diffusers",
        "model": weights.repository or name.rpartition("/")[2],
        "class": kind,
        **weights.identity,
        "dtype": dtype,
        "device": device.partition(":")[0],
        "versions": library_versions(
            "torch", "transformers", "diffusers", *(["torchvision"] if find_spec("torchvision") else [])
        ),
        "parameters": {"seed": seed, **chosen},
    }
    make = engine_loader(
        "weft.models.local.run.pipeline_engine:PipelineEngine",
        weights,
        blobs,
        kind,
        pipe,
        device=device,
        dtype=dtype,
        offload=offload,
        settings=chosen,
    )
    if pipe.least:
        needs = f"{kind} edits pictures, and this request has none"
    else:
        needs = ""
    return LocalEndpoint(
        name, blobs, make, takes=takes, gives=DRAWS, identity=identity, seed=seed, most={"image": batch}, needs=needs
    )


def _unknown(name: str, kind: Any) -> str:
    if isinstance(kind, str):
        told = kind
    else:
        if kind:
            told = "with code of its own"
        else:
            told = "(it names none)"
    return (
        f"{name} is a pipeline {told}, and weft does not know what that does with pictures. It knows {', '.join(PIPELINES)}. "
        f"Wrap it as file.py:NAME: docs/own-code.md has a worked example"
    )
