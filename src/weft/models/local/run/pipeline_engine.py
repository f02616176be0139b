"""Pipelines of diffusers at work."""

import importlib.util
import inspect

import diffusers
import torch
import transformers

from weft.errors import UserError
from weft.models.local.endpoint import LocalOutput
from weft.models.local.run.device import DTYPES, device_context, free_memory, is_out_of_memory
from weft.models.local.run.processors import without_video_processors
from weft.models.local.run.special_tokens import SpecialTokenEscaper
from weft.models.local.run.text_engine import report_size
from weft.store.images import flatten
from weft.types import Usage

AREA = 1024 * 1024  # pixels of an output that has the aspect ratio of the edited image
STEP = 16  # sides are multiples of this
IMAGE_TAGS = ("<img>", "</img>", *(f"<|image_{number}|>" for number in range(1, 100)))


class PipelineEngine:
    """A loaded pipeline. It runs batches of calls."""

    def __init__(self, weights, blobs, class_name, traits, *, tell, device, dtype, offload, settings):
        for library in (diffusers, transformers):
            library.utils.logging.set_verbosity_error()
            library.utils.logging.disable_progress_bar()
        folder = weights.ensure_local(tell)
        report_size(folder.rglob("*.safetensors"), tell)
        self.traits = traits
        self.blobs = blobs
        self.settings = settings
        self.device = torch.device(device)
        self.pipeline = _load_pipeline(folder, class_name, dtype)
        self._check_extra(class_name)
        self.pipeline.set_progress_bar_config(disable=True)
        for component in self.pipeline.components.values():
            if isinstance(component, torch.nn.Module):
                component.eval()
        self._place(device, offload)
        self.escape = SpecialTokenEscaper(self._tokenizers(), IMAGE_TAGS if traits.needs_image_tags else ())

    def _check_extra(self, class_name):
        parameters = inspect.signature(self.pipeline.__call__).parameters
        for name in self.settings.get("extra", {}):
            if name not in parameters:
                raise UserError(f"{class_name} knows no {name} (option extra)")

    def _place(self, device, offload):
        if offload == "model":
            self.pipeline.enable_model_cpu_offload(device=device)
        elif offload == "sequential":
            self.pipeline.enable_sequential_cpu_offload(device=device)
        else:
            self.pipeline.to(device)

    def _tokenizers(self):
        components = self.pipeline.components.items()
        return [component for name, component in components if name.startswith("tokenizer") and component is not None]

    def is_out_of_memory(self, error):
        return is_out_of_memory(error)

    def free_memory(self):
        free_memory()

    def run_batch(self, batch):
        prompts = [self._prompt(call) for call in batch]
        arguments = self._arguments(batch, prompts)
        gpus = [self.device] if self.device.type == "cuda" else []
        # some pipelines also use the global random generator
        with torch.inference_mode(), device_context(self.device), torch.random.fork_rng(gpus):
            torch.manual_seed(batch[0].seed % (1 << 63))
            result = self.pipeline(**arguments)
        blocked = getattr(result, "nsfw_content_detected", None) or [False] * len(batch)
        outputs = []
        for prompt, image, is_blocked in zip(prompts, result.images, blocked, strict=True):
            outputs.append(self._build_output(prompt, image, is_blocked))
        return outputs

    def _arguments(self, batch, prompts):
        """Return what the pipeline is called with."""
        arguments = {
            "prompt": prompts if len(batch) > 1 else prompts[0],
            "generator": [torch.Generator().manual_seed(call.seed % (1 << 63)) for call in batch],
            **self._settings_arguments(len(batch)),
        }
        images = []
        if self.traits.max_images:
            images = [self._load_image(image) for image in batch[0].images]
        if images:
            arguments[self.traits.image_argument] = images[0] if self.traits.single_image else images
        return arguments | self._size_arguments(batch[0], arguments.get(self.traits.image_argument))

    def _build_output(self, prompt, image, is_blocked):
        if is_blocked:
            return LocalOutput((), blocked="the pipeline's own filter let nothing through")
        tokens = self._count_tokens(prompt)
        limit = self.traits.max_tokens
        note = ""
        if limit and tokens > limit:
            note = f"it read {limit} of the prompt's {tokens} tokens"
        return LocalOutput((image,), Usage(tokens, 0, images=1), note=note)

    def _prompt(self, call):
        text = self.escape(call.text)
        if not self.traits.needs_image_tags or not call.images:
            return text
        tags = [f"<img><|image_{number}|></img>" for number in range(1, len(call.images) + 1)]
        return " ".join([*tags, text])

    def _count_tokens(self, prompt):
        tokenizer = getattr(self.pipeline, self.traits.tokenizer, None)
        if tokenizer is None:
            return 0
        return len(tokenizer(prompt, truncation=False, verbose=False).input_ids)

    def _settings_arguments(self, count):
        settings = self.settings
        arguments = dict(settings.get("extra", {}))
        if "steps" in settings:
            arguments["num_inference_steps"] = settings["steps"]
        if "guidance" in settings:
            arguments[self.traits.guidance_argument] = settings["guidance"]
        negative_prompt = settings.get("negative_prompt", self.traits.default_negative_prompt)
        if negative_prompt is not None:
            arguments["negative_prompt"] = [negative_prompt] * count if count > 1 else negative_prompt
        return arguments

    def _size_arguments(self, call, image):
        """Return the size of the output: as requested, else that of the edited image if the class needs to be told."""
        if not self.traits.has_size:
            return {}
        if call.request.size is not None:
            width, height = call.request.size
        elif "width" in self.settings:
            width = self.settings["width"]
            height = self.settings["height"]
        elif self.traits.needs_aspect_ratio and image is not None:
            scale = (AREA / (image.width * image.height)) ** 0.5
            width = image.width * scale
            height = image.height * scale
        else:
            return {}
        arguments = {"width": _round_side(width), "height": _round_side(height)}
        if self.traits.needs_aspect_ratio:
            arguments["max_area"] = arguments["width"] * arguments["height"]
        return arguments

    def _load_image(self, image):
        with self.blobs.decode_within_memory(image) as opened:
            return flatten(opened)


def _load_pipeline(folder, class_name, dtype):
    try:
        with without_video_processors():
            return getattr(diffusers, class_name).from_pretrained(
                folder, dtype=DTYPES[dtype], use_safetensors=True, local_files_only=True
            )
    except (ImportError, NameError) as error:  # without torchvision, OmniGen's class is incomplete
        hint = "; torchvision is not installed, and it may want that"
        if importlib.util.find_spec("torchvision"):
            hint = ""
        raise UserError(f"{class_name} could not be loaded: {error}{hint}") from None


def _round_side(side):
    return max(STEP, round(side / STEP) * STEP)
