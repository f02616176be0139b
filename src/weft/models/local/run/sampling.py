"""Sampling with a random generator per row of a batch.

A library samples all rows from one generator, so that a row's draw depends on the other rows. Here each row has its own
generator, by its seed: the largest of the logits with Gumbel noise added is a draw from their distribution.
"""

import torch
from transformers import LogitsProcessor, MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, TypicalLogitsWarper

NOISE_STEPS = 16  # steps whose noise is generated at once


class RowSampler(LogitsProcessor):
    """The last of a list of processors, for a library that then takes the largest logit.

    `guidance` joins the two halves of a batch, with prompts and without, into one, for classes that leave that to a
    processor.
    """

    def __init__(
        self,
        seeds,
        *,
        temperature=1.0,
        top_k=None,
        top_p=None,
        min_p=None,
        typical_p=None,
        guidance=None,
        device="cpu",
    ):
        # rows with equal seeds share one generator, and so one draw
        self._generators = {seed: torch.Generator(device=device).manual_seed(seed % (1 << 63)) for seed in seeds}
        distinct_seeds = list(self._generators)
        self._rows = torch.tensor([distinct_seeds.index(seed) for seed in seeds], device=device)
        self._temperature = temperature
        self._guidance = guidance
        self._step = 0
        self._noise = None
        self._warpers = []
        if top_k and top_k > 0:
            self._warpers.append(TopKLogitsWarper(top_k))
        if top_p is not None and top_p < 1:
            self._warpers.append(TopPLogitsWarper(top_p))
        if min_p:
            self._warpers.append(MinPLogitsWarper(min_p))
        if typical_p is not None and typical_p < 1:
            self._warpers.append(TypicalLogitsWarper(typical_p))

    def __call__(self, input_ids, scores):
        scores = scores.float()
        if self._guidance is not None:
            prompted, unprompted = scores.chunk(2)
            scores = unprompted + self._guidance * (prompted - unprompted)
        if not self._temperature:
            return scores
        scores = scores / self._temperature
        for warp in self._warpers:
            scores = warp(input_ids, scores)
        return scores + self._next_noise(scores)

    def _next_noise(self, scores):
        """Return Gumbel noise for one step."""
        index = self._step % NOISE_STEPS
        if index == 0:
            shape = (NOISE_STEPS, scores.shape[-1])
            exponentials = [
                torch.empty(shape, device=scores.device).exponential_(generator=generator)
                for generator in self._generators.values()
            ]
            self._noise = -torch.stack(exponentials).clamp_min(torch.finfo(torch.float32).tiny).log()
        self._step += 1
        return self._noise[self._rows, index]


class RepetitionPenalty(LogitsProcessor):
    """Makes tokens that a row contains already less likely. The library's own would count the padding of short rows."""

    def __init__(self, penalty, mask):
        """`mask` is the attention mask of the prompts."""
        self._penalty = penalty
        self._mask = mask

    def __call__(self, input_ids, scores):
        prompt_length = self._mask.shape[1]
        # padding is replaced by the row's last token, which is counted anyway
        prompt = torch.where(self._mask.bool(), input_ids[:, :prompt_length], input_ids[:, -1:])
        tokens = torch.cat([prompt, input_ids[:, prompt_length:]], dim=1)
        penalized = scores.gather(1, tokens)
        penalized = torch.where(penalized < 0, penalized * self._penalty, penalized / self._penalty)
        return scores.scatter(1, tokens, penalized)
