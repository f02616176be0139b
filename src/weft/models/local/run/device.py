"""Devices, number formats and memory."""

import contextlib
import gc

import torch

from weft.errors import UserError

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
SHORT = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}


def resolve_device(device: str, dtype: str) -> tuple[str, str]:
    """Where a model runs and in which numbers, in words: what the user says, else what there is. Raises UserError."""
    if torch.cuda.is_available():
        there = "cuda"
    else:
        if torch.backends.mps.is_available():
            there = "mps"
        else:
            there = "cpu"
    if device in ("", "auto"):
        device = there
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise UserError(f"device={device}: give cpu, cuda, cuda:1 or mps") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device={device}: there is no GPU here that torch {torch.__version__} can use")
    if kind == "cuda" and (torch.device(device).index or 0) >= torch.cuda.device_count():
        raise UserError(f"device={device}: there are {torch.cuda.device_count()} GPUs, counted from 0")
    dtype = SHORT.get(dtype, dtype) or ("float32" if kind == "cpu" else "bfloat16")
    if dtype == "auto":
        if kind == "cpu":
            dtype = "float32"
        else:
            dtype = "bfloat16"
    if dtype not in DTYPES:
        raise UserError(f"dtype={dtype}: give {', '.join(DTYPES)}")
    return device, dtype


def is_out_of_memory(error: Exception) -> bool:
    """Whether there was no memory for it."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        words in said for words in ("out of memory", "can't allocate memory", "alloc_failed")
    )


def device_context(device):
    """Within this, what names no device is on this one."""
    if torch.device(device).type == "cuda":
        return torch.cuda.device(device)
    return contextlib.nullcontext()


def free_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
