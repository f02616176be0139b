"""Janus and Janus-Pro: they see when they speak, and not when they draw.

Drawing takes the same number of steps for every picture, so a batch takes about as long as one of it. The class's own
loop makes room for all positions that a model has, draws for all rows from one stream of chance, and spends most of a
step on starting small kernels. So the loop is here: room for what is needed, a stream of chance for each row, and on a
GPU one step is recorded and replayed."""

import threading

import torch
from PIL import Image as Pil
from transformers import StaticCache

from weft.models.local.endpoint import LocalOutput
from weft.models.local.run.sampling import RowSampler
from weft.models.local.run.text_engine import TextEngine
from weft.types import Usage

GUIDANCE = 5.0
TEMPERATURE = 1.0
WARM = 3  # steps before one is recorded
AT_ONCE = 16  # pictures that are made of their tokens at once
RECORDING = threading.Lock()
LITTLE = 0.25  # of a GPU's memory
# what rows and lengths of prompts are rounded up to
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
COLUMNS = 64


class Janus(TextEngine):
    _steps = None

    def draw(self, batch):
        texts = [self.template(one) for one in batch]
        named = {
            "padding": True,
            "padding_side": "left",
            "return_tensors": "pt",
            "add_special_tokens": self.begins(texts),
        }
        inputs = self.processor(text=texts, generation_mode="image", **named).to(self.device)
        draws = RowSampler(
            [one.seed for one in batch],
            temperature=self.settings.get("temperature", TEMPERATURE),
            top_k=self.settings.get("top_k"),
            top_p=self.settings.get("top_p"),
            guidance=self.settings.get("guidance", GUIDANCE),
            device=self.device,
        )
        tokens = self.tokens(inputs["input_ids"], inputs["attention_mask"], draws)
        told = inputs["attention_mask"].sum(1).tolist()
        pictures = [
            picture
            for rows in tokens.split(AT_ONCE)
            for picture in self._pictures(self.model.decode_image_tokens(rows))
        ]
        return [
            LocalOutput((picture,), Usage(int(count), tokens.shape[1]))
            for picture, count in zip(pictures, told, strict=True)
        ]

    def tokens(self, ids, mask, draws):
        """A picture's tokens for each row of prompts. Every prompt stands in the batch twice: once as it is, and once
        without its words."""
        many = self.model.config.vision_config.num_image_tokens
        config = self.model.generation_config
        if config.pad_token_id is not None:
            pad = config.pad_token_id
        else:
            pad = self.tokenizer.pad_token_id
        rows, ids, mask = len(ids), *self._rounded(ids, mask, pad)
        blank = ids.clone()
        begin = self.tokenizer.convert_tokens_to_ids(self.processor.image_start_token)
        blank[(ids != self.tokenizer.bos_token_id) & (ids != begin)] = pad
        steps = self._steps_for(2 * len(ids), ids.shape[1], many)
        scores = steps.first(self.model.get_input_embeddings()(torch.cat([ids, blank])), mask.repeat(2, 1))
        made = torch.empty(rows, many, dtype=torch.long, device=ids.device)
        for at in range(many):
            drawn = draws(None, torch.cat([half[:rows] for half in scores.chunk(2)])).argmax(-1)
            made[:, at] = drawn
            if at + 1 < many:
                steps.token[:rows], steps.token[len(ids) : len(ids) + rows] = drawn, drawn
                scores = steps.next()
        return made

    def _rounded(self, ids, mask, pad):
        """On a GPU rows and lengths are rounded up, so that what was recorded for one batch serves many: added rows are
        nobody's, and added columns are hidden."""
        if not ids.is_cuda:
            return ids, mask
        rows = next((size for size in ROWS if size >= len(ids)), -(-len(ids) // ROWS[-1]) * ROWS[-1])
        columns = -(-ids.shape[1] // COLUMNS) * COLUMNS
        ids = torch.nn.functional.pad(ids, (columns - ids.shape[1], 0), value=pad)
        mask = torch.nn.functional.pad(mask, (columns - mask.shape[1], 0))
        more = rows - len(ids)
        return torch.cat([ids, ids[:1].expand(more, -1)]), torch.cat([mask, mask[:1].expand(more, -1)])

    def _steps_for(self, rows, prompt, many):
        """Those of the last batch, where they fit: no two are held at once."""
        if self._steps is None or self._steps.shape != (rows, prompt):
            self._steps = None
            self._steps = Steps(self.model, rows, prompt, many)
        self._steps.again()
        return self._steps

    def speak(self, batch):
        if self.device.type == "cuda" and self._steps is not None:
            free, whole = torch.cuda.mem_get_info(self.device)
            if free < LITTLE * whole:  # what was recorded for drawing is in the way
                self.free_memory()
        return super().speak(batch)

    def free_memory(self):
        self._steps = None
        super().free_memory()

    def _pictures(self, pixels):
        """Of numbers about 0, with channels last. The library's own way depends on what else is installed."""
        of = self.processor.image_processor
        mean, std = (torch.tensor(values, device=pixels.device) for values in (of.image_mean, of.image_std))
        return [
            Pil.fromarray(one)
            for one in ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8).cpu().numpy()
        ]


class Steps:
    """The language model, a step at a time, over a cache that is as long as it must be."""

    def __init__(self, model, rows, prompt, many):
        self._model = model
        self.shape = (rows, prompt)
        self._length = prompt + many - 1
        device = model.device
        dtype = model.dtype
        self._cache = StaticCache(config=model.config.get_text_config(), max_cache_len=self._length)
        self._hidden = torch.finfo(dtype).min
        self._seen = torch.empty((rows, 1, 1, self._length), dtype=dtype, device=device)
        self.token = torch.zeros(rows, dtype=torch.long, device=device)  # that was drawn last
        self._at = torch.zeros(1, dtype=torch.long, device=device)  # where the next token goes in the cache,
        self._position = torch.zeros(rows, 1, dtype=torch.long, device=device)  # and which of its row's it is
        self._scores = self._graph = None
        self._taken = 0
        self._records = device.type == "cuda"

    def again(self):
        """From the beginning, in the same places: what was recorded knows no others."""
        self._cache.reset()
        self._seen.fill_(self._hidden)
        self._at.fill_(self.shape[1])
        self._taken = 0

    def first(self, embedded, mask):
        """What may come first, after the prompts."""
        (rows, prompt), device, shown = self.shape, embedded.device, mask[:, None, None, :].bool()
        before = torch.ones(prompt, prompt, dtype=torch.bool, device=device).tril()
        # who sees nothing at all would be no number
        allowed = (shown & before) | torch.eye(prompt, dtype=torch.bool, device=device)
        seen = torch.full((rows, 1, prompt, self._length), self._hidden, dtype=self._seen.dtype, device=device)
        seen[..., :prompt].masked_fill_(allowed, 0.0)
        self._seen[..., :prompt].masked_fill_(shown, 0.0)
        self._position.copy_(mask.sum(1, keepdim=True))
        return self._forward(embedded, seen, (mask.cumsum(1) - 1).clamp_min(0))

    def next(self):
        """What may come after the token that was drawn last."""
        self._taken += 1
        if self._graph is None and self._records and self._taken > WARM:
            try:
                self._record()
            except RuntimeError:  # whatever cannot be recorded is done as it is
                self._records = False
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._scores

    def _record(self):
        device = self.token.device
        with RECORDING:  # one at a time in a process
            torch.cuda.synchronize(device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(device), capture_error_mode="thread_local"):
                self._scores = self._step()
        self._graph = graph

    def _step(self):
        self._seen.index_fill_(3, self._at, 0.0)
        embedded = self._model.prepare_embeddings_for_image_generation(self.token[:, None])
        scores = self._forward(embedded, self._seen, self._position)
        self._at.add_(1)
        self._position.add_(1)
        return scores

    def _forward(self, embedded, seen, positions):
        out = self._model.model.language_model(
            inputs_embeds=embedded,
            attention_mask=seen,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
        )
        return self._model.model.generation_head(out.last_hidden_state[:, -1, :])
