"""Writing the replies of many rows at once, the most likely word at a time, with keys and values kept."""

import torch
import torch.nn.functional as F
from torch import Tensor

from weft_tabletop.tiny import vocab
from weft_tabletop.weaver import words
from weft_tabletop.weaver.sizes import CONTEXT
from weft_tabletop.weaver.train.planner_net import Planner
from weft_tabletop.weaver.train.tables import Batch

SPARE_TOKENS = 12  # a plan may be so much longer than the longest expected one
UNUSED = torch.tensor([words.is_unused(token) for token in range(words.SIZE)])


@torch.no_grad()
def continue_rows(planner: Planner, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the tokens of requests and written replies, and where the reply of each row begins."""
    starts = batch.learn.int().argmax(dim=1)
    limit = min(batch.tokens.shape[1] + SPARE_TOKENS, CONTEXT)
    device = batch.tokens.device
    rows = torch.arange(len(starts), device=device)
    begin = int(starts.max())
    tokens = torch.zeros(len(starts), limit, dtype=torch.long, device=device)
    tokens[:, :begin] = batch.tokens[:, :begin] * (torch.arange(begin, device=device) < starts[:, None])
    states, caches = _read_requests(planner, tokens[:, :begin], batch.images, limit)
    state = states[rows, starts - 1]
    ends = starts.clone()
    is_open = torch.ones_like(starts, dtype=torch.bool)
    forbidden = UNUSED.to(device)
    places = torch.arange(limit, device=device)
    for step in range(limit - int(starts.min())):
        chosen = planner.logits(state).float().masked_fill(forbidden, -torch.inf).argmax(dim=1)
        at = ends.clamp(max=limit - 1)
        tokens[rows, at] = torch.where(is_open, chosen, tokens[rows, at])
        is_open = is_open & (chosen != vocab.END) & (ends < limit - 1)
        if step % 8 == 0 and not bool(is_open.any()):
            break
        x = planner.token(chosen) + planner.position.weight[at]
        allowed = (places <= at[:, None])[:, None, None, :]
        for block, (keys, values) in zip(planner.blocks, caches, strict=True):
            q, k, v = block.project(x[:, None])
            keys[rows, :, at] = k[:, :, 0]
            values[rows, :, at] = v[:, :, 0]
            attended = F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
            x = block.finish(x[:, None], attended)[:, 0]
        state = planner.norm(x)
        ends = ends + is_open
    return tokens, starts


def _read_requests(
    planner: Planner, tokens: Tensor, images: Tensor, limit: int
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """The states of the requests, and for each layer room for the keys and values of so many tokens. What lies behind
    a shorter request is overwritten before anything attends to it."""
    x = planner.embed(tokens, images)
    caches: list[tuple[Tensor, Tensor]] = []
    for block in planner.blocks:
        q, k, v = block.project(x)
        x = block.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
        room = (0, 0, 0, limit - tokens.shape[1])
        caches.append((F.pad(k, room), F.pad(v, room)))
    return planner.norm(x), caches
