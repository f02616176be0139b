"""Classes of transformers: hf/REPOSITORY or hf/FOLDER.

What a class does with pictures is in a table, since none of them says: a class that is not in it is refused, not tried.
Those that draw do not see when they draw, so that pictures are taken out of such requests, visibly. Drawing and writing
are sampled row by row: who else is in a batch does not change a draw, though bfloat16's last bits move with a batch's
shape (`dtype=float32` for those who need bits)."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.models.batching import BatchWorker
from weft.models.converters import boolean, finite_number, fraction, non_negative_number, one_of, positive_int
from weft.models.local.endpoint import LocalCall, LocalEndpoint, LocalOutput
from weft.models.local.weights import (
    ReportProgress,
    Weights,
    architecture_of,
    import_extra,
    library_versions,
    locate_weights,
)
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.plugins import load_target
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

SPEAKS = Gives(image=False, interleaved=False, ordered=False, thoughts=True, seed=True, json=False)
SPEAKS_AND_DRAWS = Gives(interleaved=False, ordered=False, seed=True, json=False)
# pixels of a side, beyond which pictures are shrunk: the classes scale them down themselves, once they are in memory
LARGEST = 4096
BLIND_PAINTER = Takes(own_images="user", drawing="none", max_side=LARGEST)
SEES = Takes(own_images="user", max_side=LARGEST)
READS = Takes(images="none")
BATCH = 64
WORDS = 32
TOKENS = 1024


class Family(Struct, frozen=True):
    """Classes that are asked in one way. `engine` works on batches of them; `size`: how many fit in one, by what is
    wanted."""

    engine: str
    takes: Takes
    gives: Gives
    batch_sizes: Mapping[str, int]
    own_options: tuple[str, ...] = ()  # options that others do not have


JANUS = Family(
    "weft.models.local.run.janus:Janus", BLIND_PAINTER, SPEAKS_AND_DRAWS, {"text": WORDS, "image": BATCH}, ("guidance",)
)
# Emu3 reads a picture otherwise beside another of another size: its words are not batched
EMU3 = Family(
    "weft.models.local.run.emu3:Emu3",
    BLIND_PAINTER,
    SPEAKS_AND_DRAWS,
    {"text": 1, "image": 8},
    ("guidance", "width", "height"),
)
VISION = Family("weft.models.local.run.text_engine:TextEngine", SEES, SPEAKS, {"text": WORDS})
LANGUAGE = Family("weft.models.local.run.text_engine:TextEngine", READS, SPEAKS, {"text": WORDS})
FAMILIES: dict[str, Family] = {
    "JanusForConditionalGeneration": JANUS,
    "Emu3ForConditionalGeneration": EMU3,
    **dict.fromkeys(
        (
            "Qwen2VLForConditionalGeneration",
            "Qwen2_5_VLForConditionalGeneration",
            "Qwen3VLForConditionalGeneration",
            "Qwen3VLMoeForConditionalGeneration",
            "InternVLForConditionalGeneration",
        ),
        VISION,
    ),
    **dict.fromkeys(
        ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
        LANGUAGE,
    ),
}
TWINS = {  # repositories in their authors' own layout, and the same weights for transformers
    "deepseek-ai/Janus-Pro-1B": "deepseek-community/Janus-Pro-1B",
    "deepseek-ai/Janus-Pro-7B": "deepseek-community/Janus-Pro-7B",
    "deepseek-ai/Janus-1.3B": "deepseek-community/Janus-1.3B",
    "BAAI/Emu3-Chat": "BAAI/Emu3-Chat-hf",
    "BAAI/Emu3-Gen": "BAAI/Emu3-Gen-hf",
}
LOCAL_OPTIONS: dict[str, Any] = {
    "revision": str,
    "version": str,
    "dtype": str,
    "device": str,
    "seed": int,
    "batch": positive_int,
    "max_side": positive_int,
    "most_images": positive_int,
    "trust_remote_code": boolean,
}
OF_SOME = ("guidance", "width", "height")


@provider_info(BLIND_PAINTER, replace(SPEAKS_AND_DRAWS, thoughts=True), extra="local", key="")
@provider_options(
    **LOCAL_OPTIONS,
    temperature=non_negative_number,
    top_p=fraction,
    top_k=positive_int,
    max_tokens=positive_int,
    thinking=boolean,
    guidance=finite_number,
    attention=one_of("sdpa", "eager", "flash_attention_2"),
    width=positive_int,
    height=positive_int,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> LocalEndpoint:
    weights, name = resolve_weights(spec, "config.json", blobs, chosen)
    kind = architecture_of(weights.config)
    trusted = chosen.pop("trust_remote_code", False)
    if "ForCausalLM" in kind:
        others = LANGUAGE
    else:
        others = VISION
    family = FAMILIES.get(kind) or (others if trusted else None)
    if family is None:
        raise UserError(_unknown(name, kind, weights))
    useless = [option for option in OF_SOME if option in chosen and option not in family.own_options]
    if useless:
        raise UserError(f"{name}: {kind} has no use for {useless[0]}={chosen[useless[0]]}")
    if ("top_p" in chosen or "top_k" in chosen) and not chosen.get("temperature"):
        raise UserError(f"{name}: top_p and top_k are for draws: give a temperature as well")
    if chosen.get("attention") == "flash_attention_2" and "image" in family.batch_sizes:
        raise UserError(f"{name}: {kind} draws with attention=sdpa or eager")
    if ("width" in chosen) != ("height" in chosen):
        raise UserError(f"{name}: give both width and height, or none")
    device, dtype = import_extra("weft.models.local.run.device").resolve_device(
        chosen.pop("device", ""), chosen.pop("dtype", "")
    )
    takes = override_takes(family.takes, chosen)
    seed = chosen.pop("seed", 0)
    batch = chosen.pop("batch", None)
    if family.gives.text:
        settings = {"max_tokens": TOKENS, **chosen}
    else:
        settings = chosen
    identity = {
        "provider": "hf",
        "model": weights.repository or name.rpartition("/")[2],
        "class": kind,
        **weights.identity,
        "dtype": dtype,
        "device": device.partition(":")[0],
        "versions": library_versions(
            "torch", "transformers", *(["torchvision"] if find_spec("torchvision") else [])
        ),  # it prepares pictures
        "parameters": {"seed": seed, **settings},
        **({"trust_remote_code": True} if trusted else {}),
    }
    make = engine_loader(
        family.engine, weights, blobs, kind, device=device, dtype=dtype, trusted=trusted, settings=settings
    )
    most = {wanted: batch if batch and many > 1 else many for wanted, many in family.batch_sizes.items()}
    twin = weights.repository and spec.model in TWINS
    if twin:
        note = f"the same weights as {spec.model}, whose layout is its authors' own"
    else:
        note = ""
    return LocalEndpoint(
        name, blobs, make, takes=takes, gives=family.gives, identity=identity, seed=seed, most=most, note=note
    )


def engine_loader(
    engine: str, *arguments: Any, **named: Any
) -> "Callable[[ReportProgress], BatchWorker[LocalCall, LocalOutput]]":
    """What makes an engine once it is needed; nothing of it is imported before."""
    return lambda tell: load_target(engine)(*arguments, tell=tell, **named)


def resolve_weights(spec: ModelSpec, file: str, blobs: Blobs, chosen: dict[str, Any]) -> tuple[Weights, str]:
    """The weights that a user named, and what they are called: a folder by the end of its path."""
    if spec.url or not spec.model:
        raise UserError(f"{spec.text}: write {spec.provider}/REPOSITORY or {spec.provider}/FOLDER")
    for library in ("torch", "transformers", *(("diffusers",) if spec.provider == "diffusers" else ())):
        if find_spec(library) is None:
            import_extra(library)
    if Path(spec.model).expanduser().is_dir():
        named = spec.model
    else:
        named = TWINS.get(spec.model, spec.model)
    weights = locate_weights(named, file, blobs, revision=chosen.pop("revision", ""), version=chosen.pop("version", ""))
    if weights.repository:
        return weights, f"{spec.provider}/{weights.repository}"
    return weights, "/".join([spec.provider, *(weights.folder.parts[-2:] if weights.folder else ())])


def override_takes(takes: Takes, chosen: dict[str, Any]) -> Takes:
    return replace(
        takes, max_side=chosen.pop("max_side", takes.max_side), max_images=chosen.pop("most_images", takes.max_images)
    )


def _unknown(name: str, kind: str, weights: Weights) -> str:
    if weights.config.get("model_type") == "multi_modality":
        return f"{name} is in its authors' own layout, which transformers does not read: take deepseek-community/Janus-Pro-1B or -7B"
    return (
        f"{name} is of the class {kind or '(it names none)'}, and weft does not know what that does with pictures. It knows "
        f"{', '.join(FAMILIES)}. Wrap it as file.py:NAME (docs/own-code.md has a worked example), or serve it by vLLM and give "
        "openai-chat/NAME@URL; if it answers through a chat template, with pictures among the words, and you trust the code that comes "
        "with it: --model-opt trust_remote_code=true"
    )
