"""Pipelines of diffusers at work."""

import importlib.util
import inspect

import diffusers
import torch
import transformers

from weft.errors import UserError
from weft.models.local.endpoint import Made
from weft.models.local.run.device import DTYPES, clear, current, is_full
from weft.models.local.run.plain import Plain
from weft.models.local.run.processors import videos_left_out
from weft.store.images import flat
from weft.types import Usage

AREA, STEP = 1024 * 1024, 16  # pixels of a picture whose shape is that of another, and what its sides are multiples of


class Drawing:
    def __init__(self, weights, blobs, kind, pipe, *, tell, device, dtype, offload, settings):
        for library in (diffusers, transformers):
            library.utils.logging.set_verbosity_error()
            library.utils.logging.disable_progress_bar()
        folder = weights.here(tell)
        size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        tell(f"loading weights, {size / 1e9:.1f} GB" if size > 1e8 else "loading weights")
        try:
            with videos_left_out():
                made = getattr(diffusers, kind).from_pretrained(folder, dtype=DTYPES[dtype], use_safetensors=True, local_files_only=True)
        except (ImportError, NameError) as error:  # OmniGen's class is half there without it
            lacks = "" if importlib.util.find_spec("torchvision") else "; torchvision is not installed, and it may want that"
            raise UserError(f"{kind} could not be loaded: {error}{lacks}") from None
        strange = [name for name in settings.get("extra", {}) if name not in inspect.signature(made.__call__).parameters]
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
        self.pipeline, self.pipe, self.blobs, self.settings, self.device = made, pipe, blobs, settings, torch.device(device)
        tokenizers = [one for name, one in made.components.items() if name.startswith("tokenizer") and one is not None]
        self.plain = Plain(tokenizers, ("<img>", "</img>", *(f"<|image_{at}|>" for at in range(1, 100))) if pipe.marks else ())

    def is_full(self, error):
        return is_full(error)

    def clear(self):
        clear()

    def work(self, batch):
        pipe, words = self.pipe, [self._words(one) for one in batch]
        named = {
            "prompt": words if len(batch) > 1 else words[0],
            "generator": [torch.Generator().manual_seed(one.seed % (1 << 63)) for one in batch],
            **self._settings(len(batch)),
        }
        if pipe.pictures:
            shown = [self._opened(image) for image in batch[0].images]
            if shown:
                named[pipe.named] = shown[0] if pipe.one else shown
        named |= self._size(batch[0], named.get(pipe.named))
        cards = [self.device] if self.device.type == "cuda" else []
        with torch.inference_mode(), current(self.device), torch.random.fork_rng(cards):  # some draw from the common stream as well
            torch.manual_seed(batch[0].seed % (1 << 63))
            out = self.pipeline(**named)
        blocked = getattr(out, "nsfw_content_detected", None) or [False] * len(batch)
        return [self._made(*one) for one in zip(batch, words, out.images, blocked, strict=True)]

    def _made(self, asked, words, picture, blocked):
        if blocked:
            return Made((), blocked="the pipeline's own filter let nothing through")
        tokens, most = self._length(words), self.pipe.reads[1]
        note = f"it read {most} of the prompt's {tokens} tokens" if most and tokens > most else ""
        return Made((picture,), Usage(tokens, 0, images=1), note=note)

    def _words(self, asked):
        text = self.plain(asked.text)
        if not self.pipe.marks or not asked.images:
            return text
        return " ".join([*(f"<img><|image_{at + 1}|></img>" for at in range(len(asked.images))), text])

    def _length(self, words):
        tokenizer = getattr(self.pipeline, self.pipe.reads[0], None)
        return len(tokenizer(words, truncation=False, verbose=False).input_ids) if tokenizer is not None else 0

    def _settings(self, many):
        given = dict(self.settings)
        named = {**given.pop("extra", {})}
        if "steps" in given:
            named["num_inference_steps"] = given["steps"]
        if "guidance" in given:
            named[self.pipe.guidance] = given["guidance"]
        negative = given.get("negative_prompt", self.pipe.negative)
        if negative is not None:
            named["negative_prompt"] = [negative] * many if many > 1 else negative
        return named

    def _size(self, asked, shown):
        """Of the picture to make: as somebody chose, else as the one that is edited where the class would not see to it."""
        if not self.pipe.sized:
            return {}
        if asked.want.size is not None:
            width, height = asked.want.size
        elif "width" in self.settings:
            width, height = self.settings["width"], self.settings["height"]
        elif self.pipe.follows and shown is not None:
            scale = (AREA / (shown.width * shown.height)) ** 0.5
            width, height = shown.width * scale, shown.height * scale
        else:
            return {}
        width, height = (max(STEP, round(side / STEP) * STEP) for side in (width, height))
        return {"width": width, "height": height, **({"max_area": width * height} if self.pipe.follows else {})}

    def _opened(self, image):
        with self.blobs.opened(image) as picture:
            return flat(picture)
