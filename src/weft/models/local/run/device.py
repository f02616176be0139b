"""Devices, number formats and memory."""

import contextlib
import gc

import torch

from weft.errors import UserError

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
DTYPE_ALIASES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")


def resolve_device(device: str, dtype: str) -> tuple[str, str]:
    """Return the device and the dtype that a model runs with: the user's, else the best there is. Raises UserError."""
    if device in ("", "auto"):
        device = _best_device()
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise UserError(f"device={device}: give cpu, cuda, cuda:1 or mps") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device={device}: there is no GPU here that torch {torch.__version__} can use")
    if kind == "cuda" and (torch.device(device).index or 0) >= torch.cuda.device_count():
        raise UserError(f"device={device}: there are {torch.cuda.device_count()} GPUs, counted from 0")
    dtype = DTYPE_ALIASES.get(dtype, dtype)
    if dtype in ("", "auto"):
        dtype = "float32" if kind == "cpu" else "bfloat16"
    if dtype not in DTYPES:
        raise UserError(f"dtype={dtype}: give {', '.join(DTYPES)}")
    return device, dtype


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that there was too little memory."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    message = str(error).lower()
    return isinstance(error, RuntimeError) and any(text in message for text in OUT_OF_MEMORY)


def device_context(device):
    """Return a context in which tensors without a device are created on this one."""
    if torch.device(device).type == "cuda":
        return torch.cuda.device(device)
    return contextlib.nullcontext()


def free_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
