"""Janus and Janus-Pro: they see when they speak, and not when they draw.

Drawing takes the same number of steps for every picture, so a batch is as long as one of it. The class would make room for all positions
that a model has, and draw for all rows from one stream of chance; it is told how much room is needed, and its guidance and its draws are
made here, row by row.
"""

import copy

import torch
from PIL import Image as Pil
from transformers import LogitsProcessorList

from weft.models.local.endpoint import Made
from weft.models.local.run.sampling import RowDraws
from weft.models.local.run.words import Words
from weft.types import Usage

GUIDANCE, TEMPERATURE = 5.0, 1.0


class Janus(Words):
    def draw(self, batch):
        texts = [self.template(one) for one in batch]
        named = {"padding": True, "padding_side": "left", "return_tensors": "pt", "add_special_tokens": self.begins(texts)}
        inputs = self.processor(text=texts, generation_mode="image", **named).to(self.device)
        tokens = self.model.config.vision_config.num_image_tokens
        draws = RowDraws(
            [one.seed for one in batch],
            temperature=self.settings.get("temperature", TEMPERATURE),
            top_k=self.settings.get("top_k"),
            top_p=self.settings.get("top_p"),
            guidance=self.settings.get("guidance", GUIDANCE),
            device=self.device,
        )
        config = copy.deepcopy(self.model.generation_config)
        config.do_sample, config.temperature, config.top_p, config.top_k, config.num_beams = False, None, None, None, 1
        config.guidance_scale = 1.0  # the class has no part in it
        config.max_length, config.max_new_tokens = inputs["input_ids"].shape[1] + tokens, None
        config.pad_token_id = config.pad_token_id if config.pad_token_id is not None else self.tokenizer.pad_token_id
        self.model._previous_max_cache_length = -1  # it would keep the room that the longest prompt so far has had
        made = self.model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            generation_mode="image",
            generation_config=config,
            logits_processor=LogitsProcessorList([draws]),
        )
        pixels = torch.cat([self.model.decode_image_tokens(rows) for rows in made.split(8)])
        pictures = [Pil.fromarray(one) for one in self._bytes(pixels).cpu().numpy()]
        told = inputs["attention_mask"].sum(1).tolist()
        return [Made((picture,), Usage(int(count), tokens)) for picture, count in zip(pictures, told, strict=True)]

    def _bytes(self, pixels):
        """Numbers about 0, with channels last, as the bytes of pictures. The library's own way back depends on what else is installed."""
        of = self.processor.image_processor
        mean, std = (torch.tensor(values, device=pixels.device) for values in (of.image_mean, of.image_std))
        return ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8)
