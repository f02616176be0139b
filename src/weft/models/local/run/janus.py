"""Janus and Janus-Pro: they see images when they write, and not when they draw.

Every image takes the same number of steps, so a batch takes about as long as one image. The class's own loop reserves a
cache for all positions of the model, samples all rows from one random generator, and spends most of a step on launching
small kernels. So the loop is here: a cache as long as needed, a random generator per row, and on a GPU one step is
recorded as a CUDA graph and replayed.
"""

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
WARM_UP_STEPS = 3  # before a step is recorded
DECODE_BATCH = 16  # images that are decoded from their tokens at once
RECORDING_LOCK = threading.Lock()  # a process can record one graph at a time
MIN_FREE_SHARE = 0.25  # of a GPU's memory; with less, the recorded step is dropped before text is generated
ROW_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64)  # that a batch is rounded up to
LENGTH_STEP = 64  # that the length of prompts is rounded up to


class Janus(TextEngine):
    _steps = None

    def generate_images(self, batch):
        prompts = [self.format_prompt(call) for call in batch]
        arguments = self.tokenizer_arguments(prompts)
        inputs = self.processor(text=prompts, generation_mode="image", **arguments).to(self.device)
        settings = self.settings_of(batch)
        sampler = RowSampler(
            [call.seed for call in batch],
            temperature=settings.get("temperature", TEMPERATURE),
            top_k=settings.get("top_k"),
            top_p=settings.get("top_p"),
            guidance=settings.get("guidance", GUIDANCE),
            device=self.device,
        )
        tokens = self.generate_tokens(inputs["input_ids"], inputs["attention_mask"], sampler)
        images = []
        for rows in tokens.split(DECODE_BATCH):
            images += self._to_pil(self.model.decode_image_tokens(rows))
        prompt_tokens = inputs["attention_mask"].sum(1).tolist()
        outputs = []
        for image, count in zip(images, prompt_tokens, strict=True):
            outputs.append(LocalOutput((image,), Usage(int(count), tokens.shape[1])))
        return outputs

    def generate_tokens(self, ids, mask, sampler):
        """Return an image's tokens for each prompt. Each prompt is in the batch twice: as it is, and without its
        text."""
        count = self.model.config.vision_config.num_image_tokens
        pad = self.model.generation_config.pad_token_id
        if pad is None:
            pad = self.tokenizer.pad_token_id
        rows = len(ids)
        ids, mask = self._round_up(ids, mask, pad)
        image_start = self.tokenizer.convert_tokens_to_ids(self.processor.image_start_token)
        unprompted = ids.clone()
        unprompted[(ids != self.tokenizer.bos_token_id) & (ids != image_start)] = pad
        steps = self._steps_for(2 * len(ids), ids.shape[1], count)
        scores = steps.prefill(self.model.get_input_embeddings()(torch.cat([ids, unprompted])), mask.repeat(2, 1))
        tokens = torch.empty(rows, count, dtype=torch.long, device=ids.device)
        for index in range(count):
            prompted_scores, unprompted_scores = scores.chunk(2)
            drawn = sampler(None, torch.cat([prompted_scores[:rows], unprompted_scores[:rows]])).argmax(-1)
            tokens[:, index] = drawn
            if index + 1 < count:
                steps.token[:rows] = drawn
                steps.token[len(ids) : len(ids) + rows] = drawn
                scores = steps.next()
        return tokens

    def _round_up(self, ids, mask, pad):
        """On a GPU, round up rows and length, so that a recorded step serves many batches.

        Added rows belong to no call, and added columns are masked.
        """
        if not ids.is_cuda:
            return ids, mask
        largest = ROW_COUNTS[-1]
        rows = next((count for count in ROW_COUNTS if count >= len(ids)), -(-len(ids) // largest) * largest)
        length = -(-ids.shape[1] // LENGTH_STEP) * LENGTH_STEP
        ids = torch.nn.functional.pad(ids, (length - ids.shape[1], 0), value=pad)
        mask = torch.nn.functional.pad(mask, (length - mask.shape[1], 0))
        added = rows - len(ids)
        return torch.cat([ids, ids[:1].expand(added, -1)]), torch.cat([mask, mask[:1].expand(added, -1)])

    def _steps_for(self, rows, prompt_length, count):
        """Return the steps of the last batch if they fit, else new ones; never two are in memory at once."""
        if self._steps is None or self._steps.shape != (rows, prompt_length):
            self._steps = None
            self._steps = DecodingSteps(self.model, rows, prompt_length, count)
        self._steps.reset()
        return self._steps

    def generate_text(self, batch):
        if self.device.type == "cuda" and self._steps is not None:
            free, total = torch.cuda.mem_get_info(self.device)
            if free < MIN_FREE_SHARE * total:
                self.free_memory()
        return super().generate_text(batch)

    def free_memory(self):
        self._steps = None
        super().free_memory()

    def _to_pil(self, pixels):
        """Convert normalised pixels, channels last, to images. The library's own way depends on what is installed."""
        processor = self.processor.image_processor
        mean = torch.tensor(processor.image_mean, device=pixels.device)
        std = torch.tensor(processor.image_std, device=pixels.device)
        values = ((pixels.float() * std + mean) * 255).clamp(0, 255).to(torch.uint8)
        return [Pil.fromarray(image) for image in values.cpu().numpy()]


class DecodingSteps:
    """The language model, one step at a time, over a cache as long as needed.

    All tensors stay at their addresses, because a recorded step uses these.
    """

    def __init__(self, model, rows, prompt_length, count):
        self._model = model
        self.shape = (rows, prompt_length)
        self._length = prompt_length + count - 1
        device = model.device
        self._cache = StaticCache(config=model.config.get_text_config(), max_cache_len=self._length)
        self._masked = torch.finfo(model.dtype).min
        self._mask = torch.empty((rows, 1, 1, self._length), dtype=model.dtype, device=device)
        self.token = torch.zeros(rows, dtype=torch.long, device=device)  # drawn last
        self._cache_index = torch.zeros(1, dtype=torch.long, device=device)  # of the next token
        self._position = torch.zeros(rows, 1, dtype=torch.long, device=device)  # of the next token in its row
        self._scores = None
        self._graph = None
        self._steps_done = 0
        self._can_record = device.type == "cuda"

    def reset(self):
        self._cache.reset()
        self._mask.fill_(self._masked)
        self._cache_index.fill_(self.shape[1])
        self._steps_done = 0

    def prefill(self, embedded, mask):
        """Run the prompts, and return the scores of the first token."""
        rows, prompt_length = self.shape
        device = embedded.device
        visible = mask[:, None, None, :].bool()
        causal = torch.ones(prompt_length, prompt_length, dtype=torch.bool, device=device).tril()
        # each token sees itself: a token that sees nothing would come out as NaN
        allowed = (visible & causal) | torch.eye(prompt_length, dtype=torch.bool, device=device)
        attention = torch.full(
            (rows, 1, prompt_length, self._length), self._masked, dtype=self._mask.dtype, device=device
        )
        attention[..., :prompt_length].masked_fill_(allowed, 0.0)
        self._mask[..., :prompt_length].masked_fill_(visible, 0.0)
        self._position.copy_(mask.sum(1, keepdim=True))
        return self._forward(embedded, attention, (mask.cumsum(1) - 1).clamp_min(0))

    def next(self):
        """Return the scores of the token after `token`."""
        self._steps_done += 1
        if self._graph is None and self._can_record and self._steps_done > WARM_UP_STEPS:
            try:
                self._record()
            except RuntimeError:  # what cannot be recorded is run step by step
                self._can_record = False
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._scores

    def _record(self):
        device = self.token.device
        with RECORDING_LOCK:
            torch.cuda.synchronize(device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(device), capture_error_mode="thread_local"):
                self._scores = self._step()
        self._graph = graph

    def _step(self):
        self._mask.index_fill_(3, self._cache_index, 0.0)
        embedded = self._model.prepare_embeddings_for_image_generation(self.token[:, None])
        scores = self._forward(embedded, self._mask, self._position)
        self._cache_index.add_(1)
        self._position.add_(1)
        return scores

    def _forward(self, embedded, attention, positions):
        output = self._model.model.language_model(
            inputs_embeds=embedded,
            attention_mask=attention,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
        )
        return self._model.model.generation_head(output.last_hidden_state[:, -1, :])
