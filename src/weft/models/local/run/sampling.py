"""Draws of which each belongs to its own row of a batch.

A library draws for all rows at once from one stream of chance, so that a row's draw depends on who stands beside it.
Here every row has a stream of its own, by its seed: the largest of logits with Gumbel noise added is a draw from their
distribution."""

import torch
from transformers import LogitsProcessor, MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, TypicalLogitsWarper

AHEAD = 16  # steps for which noise is made at once


class RowSampler(LogitsProcessor):
    """The last of a list of processors, for a library that then takes the largest. `guidance` joins a batch's two
    halves, with its prompts and without, into one, for classes that leave that to a processor."""

    def __init__(
        self, seeds, *, temperature=1.0, top_k=None, top_p=None, min_p=None, typical_p=None, guidance=None, device="cpu"
    ):
        self._streams = {seed: torch.Generator(device=device).manual_seed(seed % (1 << 63)) for seed in seeds}
        order = list(self._streams)
        self._rows = torch.tensor([order.index(seed) for seed in seeds], device=device)
        self._temperature = temperature
        self._guidance = guidance
        self._step = 0
        self._noise = None
        self._warpers = [TopKLogitsWarper(top_k)] if top_k and top_k > 0 else []
        self._warpers += [TopPLogitsWarper(top_p)] if top_p is not None and top_p < 1 else []
        self._warpers += [MinPLogitsWarper(min_p)] if min_p else []
        self._warpers += [TypicalLogitsWarper(typical_p)] if typical_p is not None and typical_p < 1 else []

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
                torch.empty(AHEAD, scores.shape[-1], device=scores.device).exponential_(generator=one)
                for one in self._streams.values()
            ]
            self._noise = -torch.stack(made).clamp_min(torch.finfo(torch.float32).tiny).log()
        self._step += 1
        return self._noise[self._rows, at]


class RepetitionPenalty(LogitsProcessor):
    """Makes what a row has said already less likely. A library's own would count the padding of short rows as said."""

    def __init__(self, penalty, mask):
        self._penalty = penalty
        self._mask = mask

    def __call__(self, input_ids, scores):
        said = torch.where(self._mask.bool(), input_ids[:, : self._mask.shape[1]], input_ids[:, -1:])
        said = torch.cat([said, input_ids[:, self._mask.shape[1] :]], dim=1)
        found = scores.gather(1, said)
        found = torch.where(found < 0, found * self._penalty, found / self._penalty)
        return scores.scatter(1, said, found)
