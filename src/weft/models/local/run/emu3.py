"""Emu3: it sees images when it writes, and not when it draws.

An image is rows of tokens with a token after each row; a constraint keeps the model to that form.
"""

import copy

import torch
from PIL import Image as Pil
from transformers import GenerationMixin, LogitsProcessor, LogitsProcessorList

from weft.models.local.endpoint import LocalOutput
from weft.models.local.run.sampling import RowSampler
from weft.models.local.run.text_engine import TextEngine
from weft.types import Usage

GUIDANCE = 3.0
TEMPERATURE = 1.0
TOP_K = 2048


class ImageRowConstraint(LogitsProcessor):
    """Allows only tokens that may come next in an image of `height` rows and `width` columns."""

    def __init__(self, start, height, width, image_tokens, row_end, image_ends):
        """`start` is the length of the prompts; `image_ends` are the tokens that end an image, in their order."""
        self._start = start
        self._length = height * (width + 1)
        self._width = width
        self._image_tokens = image_tokens
        self._row_end = row_end
        self._image_ends = image_ends

    def __call__(self, input_ids, scores):
        position = input_ids.shape[1] - self._start
        if position >= self._length:
            index = min(position - self._length, len(self._image_ends) - 1)
            allowed = torch.tensor([self._image_ends[index]], device=scores.device)
        elif position % (self._width + 1) == self._width:
            allowed = self._row_end
        else:
            allowed = self._image_tokens
        constrained = torch.full_like(scores, -torch.inf)
        constrained[:, allowed] = scores[:, allowed]
        return constrained


class Emu3(TextEngine):
    def generate_images(self, batch):
        arguments = self._processor_arguments(batch[0])
        inputs = self.processor(text=[self.escape(call.text) for call in batch], **arguments).to(self.device)
        unprompted = self.processor(text=[""] * len(batch), **arguments).to(self.device)
        height, width = (int(side) for side in inputs.pop("image_sizes")[0])
        start = inputs["input_ids"].shape[1]
        constraint = self._constraint(start, height, width)
        settings = self.settings_of(batch)
        sampler = RowSampler(
            [call.seed for call in batch],
            temperature=settings.get("temperature", TEMPERATURE),
            top_k=settings.get("top_k", TOP_K),
            top_p=settings.get("top_p"),
            device=self.device,
        )
        rows = GenerationMixin.generate(
            self.model,
            **inputs,
            generation_config=self._generation_config(height, width),
            negative_prompt_ids=unprompted["input_ids"],
            negative_prompt_attention_mask=unprompted["attention_mask"],
            logits_processor=LogitsProcessorList([constraint, sampler]),
        )
        pixels = self.model.decode_image_tokens(image_tokens=rows[:, start:], height=height, width=width)
        prompt_tokens = inputs["attention_mask"].sum(1).tolist()
        outputs = []
        for image, count in zip(pixels, prompt_tokens, strict=True):
            outputs.append(LocalOutput((self._to_pil(image),), Usage(int(count), rows.shape[1] - start)))
        return outputs

    def _processor_arguments(self, call):
        width, height = call.request.size or (self.settings.get("width"), self.settings.get("height"))
        arguments = {
            "return_for_image_generation": True,
            "padding": True,
            "padding_side": "left",
            "return_tensors": "pt",
            "ratio": "1:1",
        }
        if width and height:
            arguments["ratio"] = f"{width}:{height}"
            arguments["image_area"] = width * height
        return arguments

    def _image_ends(self):
        tokenizer = self.tokenizer
        return [tokenizer.eof_token_id, tokenizer.eoi_token_id, tokenizer.eos_token_id]

    def _constraint(self, start, height, width):
        image_tokens = torch.tensor(self.model.vocabulary_mapping.image_tokens, device=self.device)
        row_end = torch.tensor([self.tokenizer.eol_token_id], device=self.device)
        return ImageRowConstraint(start, height, width, image_tokens, row_end, self._image_ends())

    def _generation_config(self, height, width):
        """Return a config without the library's own sampling, which a RowSampler does row by row."""
        config = copy.deepcopy(self.model.generation_config)
        config.do_sample = False
        config.temperature = None
        config.top_p = None
        config.top_k = None
        config.num_beams = 1
        config.max_length = None
        config.max_new_tokens = height * (width + 1) + len(self._image_ends())
        config.guidance_scale = self.settings.get("guidance", GUIDANCE)
        if config.pad_token_id is None:
            config.pad_token_id = self.tokenizer.pad_token_id
        return config

    def _to_pil(self, pixels):
        """Convert normalised pixels, channels first, to an image."""
        processor = self.processor.image_processor
        mean = torch.tensor(processor.image_mean, device=pixels.device).view(-1, 1, 1)
        std = torch.tensor(processor.image_std, device=pixels.device).view(-1, 1, 1)
        values = ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8)
        return Pil.fromarray(values.permute(1, 2, 0).cpu().numpy())
