"""Emu3: it sees when it speaks, and not when it draws. A picture is rows of tokens with an end after each, which are
held here."""

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
    """Only what may come next in a picture of so many rows can be drawn."""

    def __init__(self, start, height, width, visual, line, ends):
        self._start = start
        self._whole = height * (width + 1)
        self._width = width
        self._visual = visual
        self._line = line
        self._ends = ends

    def __call__(self, input_ids, scores):
        at = input_ids.shape[1] - self._start
        if at >= self._whole:
            allowed = torch.tensor([self._ends[min(at - self._whole, len(self._ends) - 1)]], device=scores.device)
        else:
            if at % (self._width + 1) == self._width:
                allowed = self._line
            else:
                allowed = self._visual
        held = torch.full_like(scores, -torch.inf)
        held[:, allowed] = scores[:, allowed]
        return held


class Emu3(TextEngine):
    def draw(self, batch):
        chosen = batch[0].want.size or (self.settings.get("width"), self.settings.get("height"))
        named = {"return_for_image_generation": True, "padding": True, "padding_side": "left", "return_tensors": "pt"}
        named |= (
            {"ratio": f"{chosen[0]}:{chosen[1]}", "image_area": chosen[0] * chosen[1]}
            if all(chosen)
            else {"ratio": "1:1"}
        )
        inputs = self.processor(text=[self.plain(one.text) for one in batch], **named).to(self.device)
        free = self.processor(text=[""] * len(batch), **named).to(self.device)
        rows, columns = (int(side) for side in inputs.pop("image_sizes")[0])
        start = inputs["input_ids"].shape[1]
        tokenizer = self.tokenizer
        visual = torch.tensor(self.model.vocabulary_mapping.image_tokens, device=self.device)
        line = torch.tensor([tokenizer.eol_token_id], device=self.device)
        ends = [tokenizer.eof_token_id, tokenizer.eoi_token_id, tokenizer.eos_token_id]
        given = self.settings
        draws = RowSampler(
            [one.seed for one in batch],
            temperature=given.get("temperature", TEMPERATURE),
            top_k=given.get("top_k", TOP_K),
            top_p=given.get("top_p"),
            device=self.device,
        )
        config = copy.deepcopy(self.model.generation_config)
        config.do_sample = False
        config.temperature = None
        config.top_p = None
        config.top_k = None
        config.num_beams = 1
        config.max_length = None
        config.max_new_tokens = rows * (columns + 1) + len(ends)
        config.guidance_scale = given.get("guidance", GUIDANCE)
        if not (config.pad_token_id is not None):
            config.pad_token_id = tokenizer.pad_token_id
        made = GenerationMixin.generate(
            self.model,
            **inputs,
            generation_config=config,
            negative_prompt_ids=free["input_ids"],
            negative_prompt_attention_mask=free["attention_mask"],
            logits_processor=LogitsProcessorList([ImageRowConstraint(start, rows, columns, visual, line, ends), draws]),
        )
        pixels = self.model.decode_image_tokens(image_tokens=made[:, start:], height=rows, width=columns)
        pictures = [self._picture(one) for one in pixels]
        told = inputs["attention_mask"].sum(1).tolist()
        return [
            LocalOutput((picture,), Usage(int(count), made.shape[1] - start))
            for picture, count in zip(pictures, told, strict=True)
        ]

    def _picture(self, pixels):
        """Numbers about 0, with channels first."""
        of = self.processor.image_processor
        mean, std = (
            torch.tensor(values, device=pixels.device).view(-1, 1, 1) for values in (of.image_mean, of.image_std)
        )
        bytes_ = ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8)
        return Pil.fromarray(bytes_.permute(1, 2, 0).cpu().numpy())
