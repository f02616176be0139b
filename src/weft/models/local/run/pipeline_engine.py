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
from weft.store.images import flatten
from weft.types import Usage

# pixels of a picture whose shape is that of another, and what its sides are multiples of
AREA = 1024 * 1024
STEP = 16


class PipelineEngine:
    def __init__(self, weights, blobs, kind, pipe, *, tell, device, dtype, offload, settings):
        for library in (diffusers, transformers):
            library.utils.logging.set_verbosity_error()
            library.utils.logging.disable_progress_bar()
        folder = weights.ensure_local(tell)
        size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        tell(f"loading weights, {size / 1e9:.1f} GB" if size > 1e8 else "loading weights")
        try:
            with without_video_processors():
                made = getattr(diffusers, kind).from_pretrained(
                    folder, dtype=DTYPES[dtype], use_safetensors=True, local_files_only=True
                )
        except (ImportError, NameError) as error:  # OmniGen's class is half there without it
            if importlib.util.find_spec("torchvision"):
                lacks = ""
            else:
                lacks = "; torchvision is not installed, and it may want that"
            raise UserError(f"{kind} could not be loaded: {error}{lacks}") from None
        strange = [
            name for name in settings.get("extra", {}) if name not in inspect.signature(made.__call__).parameters
        ]
        if strange:
            raise UserError(f"{kind} knows no {strange[0]} (option extra)")
        made.set_progress_bar_config(disable=True)
        for part in made.components.values():
            if isinstance(part, torch.nn.Module):
                part.eval()
        if offload == "model":
            made.enable_model_cpu_offload(device=device)
        elif offload == "sequential":
            made.enable_sequential_cpu_offload(device=device)
        else:
            made.to(device)
        self.pipeline, self.pipe, self.blobs, self.settings, self.device = (
            made,
            pipe,
            blobs,
            settings,
            torch.device(device),
        )
        tokenizers = [one for name, one in made.components.items() if name.startswith("tokenizer") and one is not None]
        self.plain = SpecialTokenEscaper(
            tokenizers, ("<img>", "</img>", *(f"<|image_{at}|>" for at in range(1, 100))) if pipe.marks else ()
        )

    def is_out_of_memory(self, error):
        return is_out_of_memory(error)

    def free_memory(self):
        free_memory()

    def run_batch(self, batch):
        pipe = self.pipe
        words = [self._words(one) for one in batch]
        named = {
            "prompt": words if len(batch) > 1 else words[0],
            "generator": [torch.Generator().manual_seed(one.seed % (1 << 63)) for one in batch],
            **self._settings(len(batch)),
        }
        if pipe.pictures:
            shown = [self._opened(image) for image in batch[0].images]
            if shown:
                if pipe.one:
                    named[pipe.named] = shown[0]
                else:
                    named[pipe.named] = shown
        named |= self._size(batch[0], named.get(pipe.named))
        cards = [self.device] if self.device.type == "cuda" else []
        # some draw from the common stream as well
        with torch.inference_mode(), device_context(self.device), torch.random.fork_rng(cards):
            torch.manual_seed(batch[0].seed % (1 << 63))
            out = self.pipeline(**named)
        blocked = getattr(out, "nsfw_content_detected", None) or [False] * len(batch)
        return [self._made(*one) for one in zip(batch, words, out.images, blocked, strict=True)]

    def _made(self, asked, words, picture, blocked):
        if blocked:
            return LocalOutput((), blocked="the pipeline's own filter let nothing through")
        tokens = self._length(words)
        most = self.pipe.reads[1]
        if most and tokens > most:
            note = f"it read {most} of the prompt's {tokens} tokens"
        else:
            note = ""
        return LocalOutput((picture,), Usage(tokens, 0, images=1), note=note)

    def _words(self, asked):
        text = self.plain(asked.text)
        if not self.pipe.marks or not asked.images:
            return text
        return " ".join([*(f"<img><|image_{at + 1}|></img>" for at in range(len(asked.images))), text])

    def _length(self, words):
        tokenizer = getattr(self.pipeline, self.pipe.reads[0], None)
        if tokenizer is not None:
            return len(tokenizer(words, truncation=False, verbose=False).input_ids)
        return 0

    def _settings(self, many):
        given = dict(self.settings)
        named = {**given.pop("extra", {})}
        if "steps" in given:
            named["num_inference_steps"] = given["steps"]
        if "guidance" in given:
            named[self.pipe.guidance] = given["guidance"]
        negative = given.get("negative_prompt", self.pipe.negative)
        if negative is not None:
            if many > 1:
                named["negative_prompt"] = [negative] * many
            else:
                named["negative_prompt"] = negative
        return named

    def _size(self, asked, shown):
        """Of the picture to make: as somebody chose, else as the one that is edited where the class would not see to
        it."""
        if not self.pipe.sized:
            return {}
        if asked.want.size is not None:
            width, height = asked.want.size
        elif "width" in self.settings:
            width = self.settings["width"]
            height = self.settings["height"]
        elif self.pipe.follows and shown is not None:
            scale = (AREA / (shown.width * shown.height)) ** 0.5
            width = shown.width * scale
            height = shown.height * scale
        else:
            return {}
        width, height = (max(STEP, round(side / STEP) * STEP) for side in (width, height))
        return {"width": width, "height": height, **({"max_area": width * height} if self.pipe.follows else {})}

    def _opened(self, image):
        with self.blobs.opened(image) as picture:
            return flatten(picture)
