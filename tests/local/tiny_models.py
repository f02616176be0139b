"""Tiny random models in the layout of real repositories, for tests without a network.

Every make_X(folder) writes one model and returns the folder. Weights are random with a fixed seed."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

SEED = 20261


@contextmanager
def seeded() -> Iterator[None]:
    """Fixed seed inside, the caller's random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def byte_vocab() -> dict[str, int]:
    return {char: n for n, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}


def byte_tokenizer(specials: list[str], bos: str | None = None, **names: Any) -> PreTrainedTokenizerFast:
    """One token per byte, then the special tokens. With `bos`, every text starts with it."""
    core = Tokenizer(BPE(vocab=byte_vocab(), merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(specials)
    if bos:
        core.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, core.token_to_id(bos))]
        )
        names["bos_token"] = bos
    return PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **names)


def save_processor(processor: Any, folder: Path) -> None:
    """Save, and name the image processor as real repositories do (without the Pil of this machine's class)."""
    processor.save_pretrained(folder)
    processor.image_processor.save_pretrained(folder)
    for name in ("processor_config.json", "preprocessor_config.json"):
        path = folder / name
        if path.exists():
            path.write_text(path.read_text(encoding="utf-8").replace('ProcessorPil"', 'Processor"'), encoding="utf-8")


def text_sizes(vocab: int, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": vocab,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 37,
        "max_position_embeddings": 16384,
        "initializer_range": 0.3,
        **more,
    }


# ---- Janus ----

JANUS_TEMPLATE = (
    "{% for m in messages %}"
    "{% set user = m['role']|lower == 'user' %}"
    "{% if user %}{{ '<|User|>: ' }}"
    "{% elif m['role']|lower == 'assistant' %}{{ '<|Assistant|>: ' }}"
    "{% else %}{{ m['role'].capitalize() ~ ': ' }}{% endif %}"
    "{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}"
    "{{ ('' if loop.first else '\n') ~ '<image_placeholder>' ~ ('' if loop.last else '\n') }}"
    "{% elif part['type'] == 'text' %}"
    "{% set text = part['text'] %}"
    "{% if loop.first %}{% set text = text.lstrip() %}{% endif %}"
    "{% if loop.last %}{% set text = text.rstrip() %}{% endif %}"
    "{{ (' ' if not loop.first and m['content'][loop.index0 - 1]['type'] == 'text' else '') ~ text }}"
    "{% endif %}{% endfor %}"
    "{% if not loop.last or add_generation_prompt %}{{ '\n\n' if user else '<｜end▁of▁sentence｜>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|Assistant|>:' }}{% endif %}"
)


JANUS_VISION = {
    "image_size": 16,
    "patch_size": 4,
    "num_image_tokens": 16,
    "hidden_size": 32,
    "projection_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "mlp_ratio": 2,
    "initializer_range": 0.3,
}
JANUS_PICTURES = {
    "embed_dim": 8,
    "num_embeddings": 64,
    "latent_channels": 16,
    "base_channels": 32,
    "channel_multiplier": [1, 1, 1],
    "num_res_blocks": 1,
    "projection_dim": 32,
    "image_token_embed_dim": 32,
    "initializer_range": 0.3,
}


def make_janus(
    folder: Path,
    text: dict[str, Any] | None = None,
    vision: dict[str, Any] = JANUS_VISION,
    pictures: dict[str, Any] = JANUS_PICTURES,
    device: str = "cpu",
    dtype: Any = torch.float32,
) -> Path:
    """16 image tokens (4 x 4), pictures of 16 x 16, unless other sizes are given."""
    from transformers import JanusConfig, JanusForConditionalGeneration, JanusProcessor
    from transformers.models.janus.image_processing_pil_janus import JanusImageProcessorPil

    folder = Path(folder)
    bos, eos, pad = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
    image = {"image_token": "<image_placeholder>", "boi_token": "<begin_of_image>", "eoi_token": "<end_of_image>"}
    tokenizer = byte_tokenizer(
        [bos, eos, pad, *image.values(), "<|User|>", "<|Assistant|>"],
        bos,
        eos_token=eos,
        pad_token=pad,
        padding_side="left",
        model_max_length=16384,
        extra_special_tokens=image,
    )
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in (bos, eos, pad, *image.values())}
    sizes = {**text_sizes(len(tokenizer)), **(text or {})}
    config = JanusConfig(
        text_config={
            **sizes,
            "model_type": "llama",
            "bos_token_id": ids[bos],
            "eos_token_id": ids[eos],
            "pad_token_id": ids[pad],
        },
        vision_config=vision,
        vq_config=pictures,
        image_token_id=ids[image["image_token"]],
        tie_word_embeddings=False,
    )
    with seeded(), torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        model = JanusForConditionalGeneration(config).eval()
        torch.set_default_dtype(before)
    generation = model.generation_config
    generation._from_model_config = False
    generation.bos_token_id, generation.eos_token_id, generation.pad_token_id = ids[bos], ids[eos], ids[pad]
    generation.temperature, generation.guidance_scale = 1.0, 5.0
    generation.generation_kwargs = {"boi_token_id": ids[image["boi_token"]]}
    model.save_pretrained(folder)
    side = {"height": vision["image_size"], "width": vision["image_size"]}
    processor = JanusProcessor(
        JanusImageProcessorPil(size=side, image_mean=[0.5] * 3, image_std=[0.5] * 3),
        tokenizer,
        chat_template=JANUS_TEMPLATE,
        use_default_system_prompt=True,
        num_image_tokens=vision["num_image_tokens"],
    )
    save_processor(processor, folder)
    return folder


# ---- Qwen's tokenizer, and a stand-in for video processors, which do not import without torchvision ----

QWEN_SPECIALS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
CHATML = (
    "{% for m in messages %}"
    "{% if loop.first and m['role'] != 'system' and default_system %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' ~ m['role'] ~ '\n' }}"
    "{% if m['content'] is string %}{{ m['content'] }}"
    "{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}{{ IMAGE }}{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def chatml(image: str = "<|vision_start|><|image_pad|><|vision_end|>", default_system: bool = True) -> str:
    return CHATML.replace("IMAGE", repr(image)).replace("default_system", str(default_system).lower())


def qwen_tokenizer(extra: dict[str, str] | None = None, **names: Any) -> Any:
    from transformers import Qwen2Tokenizer

    vocab = byte_vocab()
    tokens = [*QWEN_SPECIALS, *(extra or {}).values()]
    vocab.update({token: len(vocab) + n for n, token in enumerate(tokens)})
    tokenizer = Qwen2Tokenizer(
        vocab=vocab, merges=[], eos_token="<|im_end|>", model_max_length=32768, extra_special_tokens=extra, **names
    )
    tokenizer.add_special_tokens({"additional_special_tokens": tokens}, replace_extra_special_tokens=False)
    return tokenizer


def has_torchvision() -> bool:
    try:
        import torchvision.transforms.v2.functional  # noqa: F401
    except Exception:
        return False
    return True


def video_processor(kind: str, **sizes: Any) -> Any:
    if has_torchvision():
        import transformers

        return getattr(transformers, kind)(**sizes)
    from transformers.utils import PushToHubMixin

    class NoVideo(PushToHubMixin):
        """Can be saved and loaded, cannot read a video."""

        model_input_names: list[str] = []
        valid_kwargs = _auto_class = None

        def to_dict(self) -> dict[str, Any]:
            return {"video_processor_type": kind, **sizes}

    return NoVideo()


def omnigen_transforms() -> None:
    """The three transforms OmniGen's processor takes from torchvision. Stays: the module has none without it."""
    try:
        from diffusers.pipelines.omnigen import pipeline_omnigen as pipeline
        from diffusers.pipelines.omnigen import processor_omnigen as omnigen
    except ImportError:
        return
    import numpy as np

    def compose(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        return lambda value: functools.reduce(lambda x, step: step(x), steps, value)

    if not hasattr(omnigen, "transforms"):
        omnigen.transforms = SimpleNamespace(
            Compose=compose,
            Lambda=lambda f: f,
            ToTensor=lambda: lambda x: torch.from_numpy(np.array(x)).permute(2, 0, 1).float() / 255,
            Normalize=lambda mean, std, inplace=False: lambda x: (x - mean[0]) / std[0],
        )
        pipeline.OmniGenMultiModalProcessor = omnigen.OmniGenMultiModalProcessor


@contextmanager
def torchvision_stub() -> Iterator[None]:
    """Lets processors that want a video processor (and OmniGen) load where torchvision is not there; does nothing where
    it is."""
    if has_torchvision():
        yield
        return
    from transformers.models.auto import video_processing_auto as auto
    from transformers.processing_utils import ProcessorMixin

    class AutoNoVideo:
        @classmethod
        def from_pretrained(cls, folder: Any, subfolder: str = "", **_: Any) -> Any:
            config = json.loads((Path(folder) / subfolder / "processor_config.json").read_text(encoding="utf-8"))
            return video_processor(config.get("video_processor", {}).get("video_processor_type", "BaseVideoProcessor"))

    old_auto, old_check = auto.AutoVideoProcessor, ProcessorMixin.check_argument_for_proper_class

    def check(self: Any, name: str, value: Any) -> Any:
        return None if name == "video_processor" else old_check(self, name, value)

    auto.AutoVideoProcessor, ProcessorMixin.check_argument_for_proper_class = AutoNoVideo, check
    omnigen_transforms()
    try:
        yield
    finally:
        auto.AutoVideoProcessor, ProcessorMixin.check_argument_for_proper_class = old_auto, old_check


video_stub = torchvision_stub


# ---- Qwen-VL ----


def qwen_vl_parts(kind: str = "qwen2_5_vl") -> tuple[Any, Any, Any]:
    """Model, tokenizer, processor. A picture is at most 32 x 32 pixels here: 16 tokens."""
    import transformers as tf
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    name = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL"}[kind]
    tokenizer = qwen_tokenizer(**({"padding_side": "left"} if kind == "qwen2_vl" else {}))
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in QWEN_SPECIALS}
    rope: dict[str, Any] = {"rope_type": "default", "mrope_section": [2, 1, 1]}
    text = text_sizes(
        len(tokenizer),
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|im_end|>"],
        pad_token_id=ids["<|endoftext|>"],
        rope_parameters=rope,
    )
    vision: dict[str, Any] = {"depth": 2, "num_heads": 4, "patch_size": 4, "hidden_size": 32, "initializer_range": 0.3}
    if kind == "qwen2_vl":
        vision |= {"embed_dim": 32, "mlp_ratio": 2}
    elif kind == "qwen2_5_vl":
        vision |= {"intermediate_size": 37, "out_hidden_size": 32, "window_size": 32, "fullatt_block_indexes": [1]}
    else:
        vision |= {
            "intermediate_size": 37,
            "out_hidden_size": 32,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
        }
        text["head_dim"], rope["mrope_interleaved"] = 8, True
    config = getattr(tf, f"{name}Config")(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    with seeded():
        model = getattr(tf, f"{name}ForConditionalGeneration")(config).eval()
    model.generation_config = tf.GenerationConfig(
        bos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
        eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]],
        do_sample=True,
        temperature=0.7,
        top_k=20,
        top_p=0.8,
        repetition_penalty=1.05,
    )
    sizes = {
        "patch_size": 4,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "size": {"shortest_edge": 64, "longest_edge": 1024},
    }
    video = video_processor("Qwen3VLVideoProcessor" if kind == "qwen3_vl" else "Qwen2VLVideoProcessor", **sizes)
    with torchvision_stub():
        processor = getattr(tf, f"{name}Processor")(
            Qwen2VLImageProcessorPil(**sizes), tokenizer, video, chat_template=chatml(default_system=kind != "qwen3_vl")
        )
    return model, tokenizer, processor


def make_qwen_vl(folder: Path, kind: str = "qwen2_5_vl") -> Path:
    folder = Path(folder)
    model, _, processor = qwen_vl_parts(kind)
    model.save_pretrained(folder)
    save_processor(processor, folder)
    return folder


# ---- other transformers models ----


def make_internvl(folder: Path) -> Path:
    """Tiles of 16 x 16, 4 tokens each: one for a square picture, two and a thumbnail for a wide one."""
    import transformers as tf
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    folder = Path(folder)
    extra = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = qwen_tokenizer(extra)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>", "<IMG_CONTEXT>")}
    config = tf.InternVLConfig(
        text_config=text_sizes(
            len(tokenizer),
            model_type="qwen2",
            bos_token_id=ids["<|endoftext|>"],
            eos_token_id=ids["<|im_end|>"],
            pad_token_id=ids["<|endoftext|>"],
        ),
        vision_config={
            "image_size": [16, 16],
            "patch_size": [4, 4],
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 37,
            "initializer_range": 0.3,
        },
        image_token_id=ids["<IMG_CONTEXT>"],
        image_seq_length=4,
        downsample_ratio=0.5,
        tie_word_embeddings=False,
    )
    with seeded():
        model = tf.InternVLForConditionalGeneration(config).eval()
    model.generation_config = tf.GenerationConfig(
        bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|im_end|>"], pad_token_id=ids["<|endoftext|>"]
    )
    model.save_pretrained(folder)
    size = {"height": 16, "width": 16}
    with torchvision_stub():
        processor = tf.InternVLProcessor(
            GotOcr2ImageProcessorPil(size=size, crop_to_patches=False, min_patches=1, max_patches=2),
            tokenizer,
            video_processor("InternVLVideoProcessor", size=size),
            image_seq_length=4,
            chat_template=chatml("<IMG_CONTEXT>\n", default_system=False),
        )
    save_processor(processor, folder)
    return folder


def make_emu3(folder: Path) -> Path:
    """64 visual tokens; a token stands for 8 x 8 pixels, so image_area=32 * 32 asks for 4 x 4 tokens."""
    import transformers as tf

    folder = Path(folder)
    bos, eos, pad = "<|extra_203|>", "<|extra_204|>", "<|endoftext|>"
    extra = {
        "image_token": "<image>",
        "boi_token": "<|image start|>",
        "eoi_token": "<|image end|>",
        "image_wrapper_token": "<|image token|>",
        "eof_token": "<|extra_201|>",
        "eol_token": "<|extra_200|>",
    }
    visual = [f"<|visual token {n:06d}|>" for n in range(64)]
    vocab = byte_vocab()
    vocab.update({token: len(vocab) + n for n, token in enumerate([bos, eos, pad, *extra.values(), *visual])})
    tokenizer = tf.GPT2Tokenizer(
        vocab=vocab,
        merges=[],
        bos_token=bos,
        eos_token=eos,
        pad_token=pad,
        unk_token=pad,
        padding_side="left",
        extra_special_tokens=extra,
        model_max_length=9216,
    )
    tokenizer.add_tokens([tf.AddedToken(token, special=True) for token in visual])
    config = tf.Emu3Config(
        text_config=text_sizes(
            len(tokenizer),
            bos_token_id=vocab[bos],
            eos_token_id=vocab[eos],
            pad_token_id=vocab[pad],
            attention_dropout=0.0,
        ),
        vq_config={
            "codebook_size": 64,
            "embed_dim": 4,
            "latent_channels": 4,
            "base_channels": 32,
            "channel_multiplier": [1, 1, 1, 1],
            "num_res_blocks": 1,
            "attn_resolutions": [3],
            "hidden_size": 32,
            "temporal_downsample_factor": 1,
        },
        vocabulary_map={token: vocab[token] for token in [*extra.values(), *visual]},
    )
    with seeded():
        model = tf.Emu3ForConditionalGeneration(config).eval()
    model.generation_config = tf.GenerationConfig(
        bos_token_id=vocab[bos], eos_token_id=vocab[eos], pad_token_id=vocab[pad]
    )
    model.save_pretrained(folder)
    template = (
        "{% for m in messages %}{% if m['role'] != 'system' %}{{ m['role'].upper() ~ ': ' }}{% endif %}"
        "{% for part in m['content'] %}{% if part['type'] == 'image' %}{{ '<image>' }}"
        "{% elif part['type'] == 'text' %}{{ part['text'] ~ ('' if m['role'] == 'assistant' else ' ') }}{% endif %}{% endfor %}"
        "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
    )
    images = tf.Emu3ImageProcessor(min_pixels=16 * 16, max_pixels=32 * 32)
    save_processor(tf.Emu3Processor(images, tokenizer, chat_template=template), folder)
    return folder


def make_llama(folder: Path) -> Path:
    import transformers as tf

    folder = Path(folder)
    begin, eot = "<|begin_of_text|>", "<|eot_id|>"
    tokenizer = byte_tokenizer(
        [begin, "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", eot],
        begin,
        eos_token=eot,
        model_max_length=16384,
    )
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}"
        "{{ '<|start_header_id|>' ~ m['role'] ~ '<|end_header_id|>\n\n' ~ (m['content']|trim) ~ '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
    )
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in (begin, "<|end_of_text|>", eot)}
    config = tf.LlamaConfig(**text_sizes(len(tokenizer), bos_token_id=ids[begin], eos_token_id=ids[eot]))
    with seeded():
        model = tf.LlamaForCausalLM(config).eval()
    model.generation_config = tf.GenerationConfig(
        bos_token_id=ids[begin],
        eos_token_id=[ids["<|end_of_text|>"], ids[eot]],
        do_sample=True,
        temperature=0.6,
        top_p=0.9,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# ---- Diffusers ----

AREA = 64 * 64


@contextmanager
def small_conditions(area: int = AREA) -> Iterator[None]:
    """Editors scale their pictures to about a megapixel; here to `area`. Restored at the end."""
    from diffusers import FluxKontextPipeline
    from diffusers.pipelines.flux import pipeline_flux_kontext as kontext
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus

    def smaller(old: Callable[..., Any]) -> Callable[..., Any]:
        return lambda target_area, ratio: old(min(target_area, area), ratio)

    old_call = FluxKontextPipeline.__call__

    @functools.wraps(old_call)
    def call(*args: Any, **kwargs: Any) -> Any:
        return old_call(*args, **{"max_area": area, **kwargs})

    side = round(area**0.5)
    changes: list[tuple[Any, str, Any]] = [
        (plus, "CONDITION_IMAGE_SIZE", area),
        (plus, "VAE_IMAGE_SIZE", area),
        (plus, "calculate_dimensions", smaller(plus.calculate_dimensions)),
        (edit, "calculate_dimensions", smaller(edit.calculate_dimensions)),
        (kontext, "PREFERRED_KONTEXT_RESOLUTIONS", [(side, side)]),
        (FluxKontextPipeline, "__call__", call),
    ]
    old = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)


def louder(model: Any, gain: float = 8.0) -> Any:
    """Random decoders answer with grey: make their last layer stronger, so that pictures differ."""
    with torch.no_grad():
        model.decoder.conv_out.weight.mul_(gain)
    return model


def qwen_image(name: str, folder: Path) -> Path:
    import diffusers as df

    text_encoder, tokenizer, processor = qwen_vl_parts("qwen2_5_vl")
    with seeded():
        transformer = df.QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            axes_dims_rope=(8, 4, 4),
        )
        vae = df.AutoencoderKLQwenImage(
            base_dim=8,
            z_dim=4,
            dim_mult=[1, 2, 4],
            num_res_blocks=1,
            temperal_downsample=[False, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        )
    parts = {
        "transformer": transformer.eval(),
        "vae": louder(vae).eval(),
        "text_encoder": text_encoder,
        "tokenizer": tokenizer,
        "scheduler": df.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift_terminal=0.02),
    }
    if "Edit" in name:
        import transformers as tf

        with torchvision_stub():
            parts["processor"] = tf.Qwen2VLProcessor(
                processor.image_processor, tokenizer, processor.video_processor, chat_template=processor.chat_template
            )
    getattr(df, name)(**parts).save_pretrained(folder)
    for path in folder.glob("processor/*config.json"):
        path.write_text(path.read_text(encoding="utf-8").replace('ProcessorPil"', 'Processor"'), encoding="utf-8")
    return folder


def make_qwen_image(folder: Path) -> Path:
    return qwen_image("QwenImagePipeline", Path(folder))


def make_qwen_image_edit(folder: Path) -> Path:
    return qwen_image("QwenImageEditPipeline", Path(folder))


def make_qwen_image_edit_plus(folder: Path) -> Path:
    return qwen_image("QwenImageEditPlusPipeline", Path(folder))


def clip_parts(projection: bool = False) -> tuple[Any, Any]:
    import transformers as tf

    vocab = byte_vocab()
    vocab.update({f"{char}</w>": n + 256 for char, n in byte_vocab().items()})
    vocab.update({"<|startoftext|>": 512, "<|endoftext|>": 513})
    tokenizer = tf.CLIPTokenizer(vocab=vocab, merges=[], model_max_length=77)
    config = tf.CLIPTextConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=37,
        num_hidden_layers=2,
        num_attention_heads=4,
        projection_dim=32,
        bos_token_id=512,
        eos_token_id=513,
        pad_token_id=513,
        max_position_embeddings=77,
        initializer_range=0.3,
        initializer_factor=10.0,
    )
    return (tf.CLIPTextModelWithProjection if projection else tf.CLIPTextModel)(config).eval(), tokenizer


def small_vae(**more: Any) -> Any:
    import diffusers as df

    blocks = more.pop("blocks", 3)
    vae = df.AutoencoderKL(
        block_out_channels=(8,) * blocks,
        layers_per_block=1,
        norm_num_groups=4,
        latent_channels=4,
        sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * blocks,
        up_block_types=("UpDecoderBlock2D",) * blocks,
        **more,
    )
    return louder(vae).eval()


def flux(name: str, folder: Path, transformer: Any = None, text_encoder_2: Any = None, vae: Any = None) -> Path:
    """Its large parts may be given."""
    import diffusers as df
    import transformers as tf

    letters = ["<pad>", "</s>", "<unk>", "▁", *map(chr, range(33, 127))]
    pieces = [(letter, -1.0 if n > 2 else 0.0) for n, letter in enumerate(letters)]
    tokenizer_2 = tf.T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512)
    with seeded():
        text_encoder, tokenizer = clip_parts()
        text_encoder_2 = text_encoder_2 or tf.T5EncoderModel(
            tf.T5Config(
                vocab_size=len(letters),
                d_model=32,
                d_kv=8,
                d_ff=37,
                num_layers=2,
                num_heads=4,
                feed_forward_proj="gated-gelu",
            )
        )
        transformer = transformer or df.FluxTransformer2DModel(
            patch_size=1,
            in_channels=16,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            guidance_embeds=True,
            axes_dims_rope=(4, 4, 8),
        )
        vae = vae or small_vae(
            use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159, scaling_factor=0.3611
        )
    pipe = getattr(df, name)(
        scheduler=df.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift=3.0),
        vae=vae,
        text_encoder=text_encoder,
        tokenizer=tokenizer,
        text_encoder_2=text_encoder_2.eval(),
        tokenizer_2=tokenizer_2,
        transformer=transformer.eval(),
    )
    pipe.save_pretrained(folder)
    return folder


def make_flux(folder: Path) -> Path:
    return flux("FluxPipeline", Path(folder))


def make_flux_kontext(folder: Path) -> Path:
    return flux("FluxKontextPipeline", Path(folder))


def make_sd(folder: Path) -> Path:
    """StableDiffusion in the shape of version 2.1: no safety checker. Pictures of 64 x 64 by default."""
    import diffusers as df

    with seeded():
        text_encoder, tokenizer = clip_parts()
        unet = df.UNet2DConditionModel(
            sample_size=16,
            in_channels=4,
            out_channels=4,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
            use_linear_projection=True,
        )
        vae = small_vae()
    scheduler = df.DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
    )
    pipe = df.StableDiffusionPipeline(
        vae=vae,
        text_encoder=text_encoder,
        tokenizer=tokenizer,
        unet=unet.eval(),
        scheduler=scheduler,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.save_pretrained(folder)
    return Path(folder)


def make_omnigen(folder: Path) -> Path:
    """Wants torchvision, or torchvision_stub() when it is made, loaded and used."""
    import diffusers as df
    import transformers as tf

    vocab = {
        token: n
        for n, token in enumerate(["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), "▁", "<|pad|>"])
    }
    tokenizer = tf.LlamaTokenizer(
        vocab=vocab, merges=[], add_bos_token=True, pad_token="<|pad|>", model_max_length=131072
    )
    with seeded():
        transformer = df.OmniGenTransformer2DModel(
            hidden_size=32,
            num_attention_heads=4,
            num_key_value_heads=4,
            intermediate_size=37,
            num_layers=1,
            in_channels=4,
            time_step_dim=8,
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            pos_embed_max_size=32,
            rope_scaling={"type": "su", "long_factor": [1.0] * 4, "short_factor": [1.0] * 4},
        )
        vae = small_vae(blocks=4, scaling_factor=0.13025)
    with torchvision_stub():
        pipe = df.OmniGenPipeline(
            transformer.eval(), df.FlowMatchEulerDiscreteScheduler(invert_sigmas=True), vae, tokenizer
        )
        pipe.save_pretrained(folder)
    return Path(folder)


# ---- make all, load all, run all ----


MAKERS: dict[str, Callable[[Path], Path]] = {
    "janus": make_janus,
    "qwen2_5_vl": make_qwen_vl,
    "qwen2_vl": functools.partial(make_qwen_vl, kind="qwen2_vl"),
    "qwen3_vl": functools.partial(make_qwen_vl, kind="qwen3_vl"),
    "internvl": make_internvl,
    "emu3": make_emu3,
    "llama": make_llama,
    "qwen_image_edit_plus": make_qwen_image_edit_plus,
    "qwen_image_edit": make_qwen_image_edit,
    "qwen_image": make_qwen_image,
    "flux_kontext": make_flux_kontext,
    "flux": make_flux,
    "sd": make_sd,
    "omnigen": make_omnigen,
}


def picture(width: int = 64, height: int = 64, n: int = 0) -> Any:
    from PIL import Image

    return Image.effect_mandelbrot((width, height), (-2, -1.5, 1, 1.5), 10 + n).convert("RGB")


def say(processor: Any, model: Any) -> str:
    """Two dialogues of different length in one batch, greedy."""
    ask = [
        [
            {
                "role": "user",
                "content": [
                    {"type": "image", "image": picture()},
                    {"type": "text", "text": "One."},
                    {"type": "image", "image": picture(96, 64, 5)},
                    {"type": "text", "text": "Two \U0001f600?"},
                ],
            }
        ],
        [{"role": "user", "content": [{"type": "text", "text": "No picture."}]}],
    ]
    inputs = processor.apply_chat_template(
        ask,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        processor_kwargs={"return_tensors": "pt", "padding": True, "padding_side": "left"},
    )
    out = model.generate(**inputs, max_new_tokens=8, do_sample=False)[:, inputs["input_ids"].shape[1] :]
    return repr(processor.batch_decode(out, skip_special_tokens=True))


def janus_draw(processor: Any, model: Any, prompts: list[str], **options: Any) -> list[Any]:
    chats = [[{"role": "user", "content": [{"type": "text", "text": prompt}]}] for prompt in prompts]
    texts = [processor.apply_chat_template(chat, add_generation_prompt=True) for chat in chats]
    inputs = processor(text=texts, generation_mode="image", padding=True, return_tensors="pt")
    length = inputs["input_ids"].shape[1] + model.config.vision_config.num_image_tokens
    with torch.inference_mode():
        options = {"do_sample": False, "guidance_scale": 5.0, "max_length": length, **options}
        tokens = model.generate(**inputs, generation_mode="image", **options)
        # channels first: the PIL backend wants it
        values = model.decode_image_tokens(tokens).float().permute(0, 3, 1, 2)
    return processor.postprocess(list(values), return_tensors="PIL.Image.Image")["pixel_values"]


def emu3_draw(processor: Any, model: Any, prompts: list[str], area: int = 32 * 32, ratio: str = "1:1") -> list[Any]:
    size = {
        "ratio": ratio,
        "image_area": area,
        "return_for_image_generation": True,
        "padding": True,
        "return_tensors": "pt",
    }
    inputs = processor(text=prompts, **size)
    negative = processor(text=["bad"] * len(prompts), **size)
    height, width = (int(n) for n in inputs.pop("image_sizes")[0])
    tokenizer, start, grid = processor.tokenizer, inputs["input_ids"].shape[1], height * (width + 1)
    end = [tokenizer.eof_token_id, tokenizer.eoi_token_id, tokenizer.eos_token_id]

    def allowed(_: int, ids: Any) -> list[int]:
        n = len(ids) - start
        if n >= grid:
            return [end[n - grid]]
        return [tokenizer.eol_token_id] if n % (width + 1) == width else model.vocabulary_mapping.image_tokens

    tokens = model.generate(
        **inputs,
        max_new_tokens=grid + 3,
        do_sample=False,
        prefix_allowed_tokens_fn=allowed,
        guidance_scale=3.0,
        negative_prompt_ids=negative["input_ids"],
        negative_prompt_attention_mask=negative["attention_mask"],
    )
    values = model.decode_image_tokens(image_tokens=tokens[:, start:], height=height, width=width)
    return processor.postprocess(list(values.float()), return_tensors="PIL.Image.Image")["pixel_values"]


def run_one(name: str, folder: Path) -> str:
    import transformers as tf
    from diffusers import DiffusionPipeline

    if name == "llama":
        tokenizer, model = tf.AutoTokenizer.from_pretrained(folder), tf.AutoModelForCausalLM.from_pretrained(folder)
        inputs = tokenizer.apply_chat_template(
            [{"role": "user", "content": "Hi \U0001f600"}],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )
        out = model.generate(**inputs, max_new_tokens=8, do_sample=False, pad_token_id=tokenizer.eos_token_id)
        return repr(tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))
    if not (folder / "model_index.json").exists():
        with torchvision_stub():
            processor = tf.AutoProcessor.from_pretrained(folder)
        model = tf.AutoModelForMultimodalLM.from_pretrained(folder).eval()
        draw = {"janus": janus_draw, "emu3": emu3_draw}.get(name)
        made = [image.size for image in draw(processor, model, ["a cat", "a much longer dog"])] if draw else ""
        return f"{say(processor, model)} {made}"
    with torchvision_stub(), small_conditions():
        pipe = DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
        pipe.set_progress_bar_config(disable=True)
        options: dict[str, Any] = {
            "num_inference_steps": 2,
            "generator": torch.Generator().manual_seed(0),
            "height": 64,
            "width": 64,
        }
        prompt = "make it red \U0001f600"
        if name == "omnigen":
            prompt, options["input_images"] = f"<img><|image_1|></img> {prompt}", [picture()]
        elif "edit" in name or "kontext" in name:
            options["image"] = [picture(), picture(96, 64)] if name.endswith("plus") else picture()
        if name.startswith("qwen"):
            options["negative_prompt"] = " "
        return f"{type(pipe).__name__} {pipe(prompt=prompt, **options).images[0].size}"


def main() -> None:
    import sys
    import tempfile
    import time

    names = sys.argv[1:] or list(MAKERS)
    with tempfile.TemporaryDirectory() as root:
        for name in names:
            start = time.perf_counter()
            folder = MAKERS[name](Path(root) / name)
            made = time.perf_counter()
            text = run_one(name, folder)
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            print(
                f"{name:22} made {made - start:.2f} s, ran {time.perf_counter() - made:.2f} s, {size / 1e6:.1f} MB: "
                f"{text}"
            )


if __name__ == "__main__":
    main()
