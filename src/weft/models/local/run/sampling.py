"""Draws of which each belongs to its own row of a batch.

A library draws for all rows at once from one stream of chance, so that a row's draw depends on who stands beside it. Here every row has a
stream of its own, by its seed: the largest of logits with Gumbel noise added is a draw from their distribution.
"""

import torch
from transformers import LogitsProcessor, TopKLogitsWarper, TopPLogitsWarper

AHEAD = 16  # steps for which noise is made at once


class RowDraws(LogitsProcessor):
    """The last of a list of processors, for a library that then takes the largest. `guidance` joins a batch's two halves, with its prompts
    and without, into one, for classes that leave that to a processor."""

    def __init__(self, seeds, *, temperature=1.0, top_k=None, top_p=None, guidance=None, device="cpu"):
        self._streams = {seed: torch.Generator(device=device).manual_seed(seed % (1 << 63)) for seed in seeds}
        order = list(self._streams)
        self._rows = torch.tensor([order.index(seed) for seed in seeds], device=device)
        self._temperature, self._guidance, self._step, self._noise = temperature, guidance, 0, None
        warpers = [(TopKLogitsWarper, top_k if top_k and top_k > 0 else None), (TopPLogitsWarper, top_p if top_p and top_p < 1 else None)]
        self._warpers = [make(value) for make, value in warpers if value is not None]

    def __call__(self, input_ids, scores):
        scores = scores.float()
        if self._guidance is not None:
            prompted, free = scores.chunk(2)
            scores = free + self._guidance * (prompted - free)
        if not self._temperature:
            return scores
        scores = scores / self._temperature
        for warp in self._warpers:
            scores = warp(input_ids, scores)
        return scores + self._drawn(scores)

    def _drawn(self, scores):
        at = self._step % AHEAD
        if at == 0:
            made = [
                torch.empty(AHEAD, scores.shape[-1], device=scores.device).exponential_(generator=one) for one in self._streams.values()
            ]
            self._noise = -torch.stack(made).clamp_min(torch.finfo(torch.float32).tiny).log()
        self._step += 1
        return self._noise[self._rows, at]
