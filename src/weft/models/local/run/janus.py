"""Janus and Janus-Pro: they see when they speak, and not when they draw.

Drawing takes the same number of steps for every picture, so a batch takes about as long as one of it. The class's own loop makes room for
all positions that a model has, draws for all rows from one stream of chance, and spends most of a step on starting small kernels. So the
loop is here: room for what is needed, a stream of chance for each row, and on a GPU one step is recorded and replayed.
"""

import contextlib

import torch
from PIL import Image as Pil
from transformers import StaticCache

from weft.models.local.endpoint import Made
from weft.models.local.run.sampling import RowDraws
from weft.models.local.run.words import Words
from weft.types import Usage

GUIDANCE, TEMPERATURE = 5.0, 1.0
WARM = 3  # steps before one is recorded
AT_ONCE = 16  # pictures that are made of their tokens at once


class Janus(Words):
    def draw(self, batch):
        texts = [self.template(one) for one in batch]
        named = {"padding": True, "padding_side": "left", "return_tensors": "pt", "add_special_tokens": self.begins(texts)}
        inputs = self.processor(text=texts, generation_mode="image", **named).to(self.device)
        draws = RowDraws(
            [one.seed for one in batch],
            temperature=self.settings.get("temperature", TEMPERATURE),
            top_k=self.settings.get("top_k"),
            top_p=self.settings.get("top_p"),
            guidance=self.settings.get("guidance", GUIDANCE),
            device=self.device,
        )
        tokens = self.tokens(inputs["input_ids"], inputs["attention_mask"], draws)
        told = inputs["attention_mask"].sum(1).tolist()
        pictures = [picture for rows in tokens.split(AT_ONCE) for picture in self._pictures(self.model.decode_image_tokens(rows))]
        return [Made((picture,), Usage(int(count), tokens.shape[1])) for picture, count in zip(pictures, told, strict=True)]

    def tokens(self, ids, mask, draws):
        """A picture's tokens for each row of prompts. Every prompt stands in the batch twice: once as it is, and once without its words."""
        many, config = self.model.config.vision_config.num_image_tokens, self.model.generation_config
        blank = ids.clone()
        kept = (ids == config.bos_token_id) | (ids == config.generation_kwargs["boi_token_id"])
        blank[~kept] = config.pad_token_id if config.pad_token_id is not None else self.tokenizer.pad_token_id
        ids, mask = torch.cat([ids, blank]), mask.repeat(2, 1)
        steps = Steps(self.model, mask, many)
        made = torch.empty(len(ids) // 2, many, dtype=torch.long, device=ids.device)
        scores = steps.first(self.model.get_input_embeddings()(ids))
        for at in range(many):
            drawn = draws(None, scores).argmax(-1)
            made[:, at] = drawn
            if at + 1 < many:
                scores = steps.next(drawn.repeat(2))
        return made

    def _pictures(self, pixels):
        """Of numbers about 0, with channels last. The library's own way depends on what else is installed."""
        of = self.processor.image_processor
        mean, std = (torch.tensor(values, device=pixels.device) for values in (of.image_mean, of.image_std))
        return [Pil.fromarray(one) for one in ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8).cpu().numpy()]


class Steps:
    """The language model, a step at a time, over a cache that is as long as it must be."""

    def __init__(self, model, mask, many):
        self._model, self._rows, self._prompt = model, mask.shape[0], mask.shape[1]
        self._length = self._prompt + many - 1
        device, dtype = mask.device, model.dtype
        self._cache = StaticCache(config=model.config.get_text_config(), max_cache_len=self._length)
        self._mask, self._hidden = mask, torch.finfo(dtype).min
        self._seen = torch.full((self._rows, 1, 1, self._length), self._hidden, dtype=dtype, device=device)
        self._token = torch.zeros(self._rows, dtype=torch.long, device=device)
        self._at = torch.tensor([self._prompt], device=device)  # where the next token goes in the cache,
        self._position = mask.sum(1, keepdim=True)  # and which of its row's it is
        self._scores = self._graph = None
        self._taken = 0

    def first(self, embedded):
        """What may come first, after the prompts."""
        prompt, device = self._prompt, embedded.device
        shown = self._mask[:, None, None, :].bool() & torch.ones(prompt, prompt, dtype=torch.bool, device=device).tril()
        shown = shown | torch.eye(prompt, dtype=torch.bool, device=device)  # who sees nothing at all would be no number
        seen = torch.full((self._rows, 1, prompt, self._length), self._hidden, dtype=self._seen.dtype, device=device)
        seen[..., :prompt].masked_fill_(shown, 0.0)
        self._seen[..., :prompt].masked_fill_(self._mask[:, None, None, :].bool(), 0.0)
        positions = (self._mask.cumsum(1) - 1).clamp_min(0)
        return self._forward(embedded, seen, positions)

    def next(self, token):
        """What may come after this one."""
        self._token.copy_(token)
        self._taken += 1
        if self._graph is not None:
            self._graph.replay()
            return self._scores
        if self._taken > WARM and self._token.is_cuda:
            with contextlib.suppress(RuntimeError):  # whatever cannot be recorded is done as it is
                return self._recorded()
            self._taken = -(1 << 30)
        return self._step()

    def _recorded(self):
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._scores = self._step()
        self._graph = graph
        graph.replay()
        return self._scores

    def _step(self):
        self._seen.index_fill_(3, self._at, 0.0)
        embedded = self._model.prepare_embeddings_for_image_generation(self._token[:, None])
        scores = self._forward(embedded, self._seen, self._position)
        self._at.add_(1)
        self._position.add_(1)
        return scores

    def _forward(self, embedded, seen, positions):
        out = self._model.model.language_model(
            inputs_embeds=embedded, attention_mask=seen, position_ids=positions, past_key_values=self._cache, use_cache=True
        )
        return self._model.model.generation_head(out.last_hidden_state[:, -1, :])
