"""What arrays, tensors, torch modules and images consist of. Their libraries are not imported: see `describe_value`."""

import hashlib
import sys
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from weft.models.code_digest import is_installed_class

SAMPLED = 64  # numbers of an array or a tensor
HOOKS = ("_forward_hooks", "_forward_pre_hooks")


class LibraryValue(Struct, frozen=True):
    """A value of a library as facts about it, and values to follow further."""

    kind: str
    facts: tuple[str, ...] = ()
    followed: Mapping[str, Any] = {}
    optional: Mapping[str, Any] = {}  # followed too, but what cannot be seen in them is the library's own affair


class Unseen(Exception):
    """A value that no digest can cover."""


def describe_value(value: Any, *, sampled: bool = False) -> LibraryValue | None:
    """Return what a value of NumPy, torch or Pillow consists of; None for anything else. `sampled`: arrays and tensors
    count by their first numbers alone, which takes no time and tells most of them apart.

    A library that was not imported has no values. Raises Unseen for one whose content cannot be read.
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _describe_array(numpy, value, sampled)
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "nn"):
        if isinstance(value, torch.Tensor):
            return _describe_tensor(torch, value, sampled)
        if isinstance(value, torch.jit.ScriptModule):
            return _describe_script(value)
        if isinstance(value, torch.nn.Module):
            return _describe_module(torch, value)
        if isinstance(value, (torch.dtype, torch.device)):
            return LibraryValue("torch", (str(value),))
    pil: Any = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(value, pil.Image):
        return _describe_image(value)
    return None


def _describe_array(numpy: Any, value: Any, sampled: bool) -> LibraryValue:
    array = numpy.asarray(value)
    if array.dtype.hasobject:
        raise Unseen
    counted = array.reshape(-1)[:SAMPLED] if sampled else array
    facts = (str(array.dtype), str(array.shape), hashlib.sha256(counted.tobytes()).hexdigest())
    if isinstance(value, (numpy.generic, numpy.memmap)) or type(value) is numpy.ndarray:
        return LibraryValue("array", facts)
    # a subclass, such as a masked array, has its mask beside the numbers
    return LibraryValue("array", facts, {"class": type(value), **vars(value)})


def _describe_tensor(torch: Any, tensor: Any, sampled: bool) -> LibraryValue:
    try:
        detached = tensor.detach()
        counted = detached.flatten()[:SAMPLED] if sampled else detached
        flat = counted.cpu().contiguous().view(-1).view(torch.uint8)
        content = hashlib.sha256(flat.numpy()).hexdigest()
    except (RuntimeError, TypeError, NotImplementedError, ValueError):
        raise Unseen from None
    facts = (str(tensor.dtype), str(tuple(tensor.shape)), content)
    if tensor.is_quantized:
        facts = (*facts, str(tensor.qscheme()), repr(tensor))
    return LibraryValue("tensor", facts, cast("dict[str, Any]", vars(tensor)))


def _describe_script(module: Any) -> LibraryValue:
    try:
        content = module.save_to_buffer()
    except Exception:
        raise Unseen from None
    return LibraryValue("script", (hashlib.sha256(content).hexdigest(), str(module.training)))


def _describe_module(torch: Any, module: Any) -> LibraryValue:
    """Return a module's weights, and the code, the hooks and the attributes of all its parts.

    Attributes of the library's own parts are optional: they have handles of the library.
    """
    followed: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    internal = cast("dict[str, Any]", vars(torch.nn.Module())).keys() - {"training"}
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            followed[name] = part
            continue
        attributes = cast("dict[str, Any]", vars(part))
        own = {key: attributes[key] for key in attributes if key not in internal}
        followed[f"{name} class"] = cast(Any, type(part))
        tensors = {**attributes["_parameters"], **attributes["_buffers"]}
        weights |= {f"{name}.{key}" if name else key: tensor for key, tensor in tensors.items()}
        hooks = [list(attributes[key].values()) for key in HOOKS if attributes.get(key)]
        if hooks:
            followed[f"{name} hooks"] = hooks
        if is_installed_class(cast(Any, type(part))):
            optional[name] = own
        else:
            followed[name] = own
    # of all modules, whatever net they are in
    everywhere: Any = torch.nn.modules.module
    global_hooks: list[Any] = [vars(everywhere)[f"_global{key}"] for key in HOOKS]
    if any(global_hooks):
        followed["global hooks"] = global_hooks
    # what is stored in another form, such as quantised weights
    state: dict[str, Any] = torch.nn.Module.state_dict(module)
    followed["weights"] = weights
    followed["other weights"] = {key: state[key] for key in state if key not in weights}
    settings = (str(torch.get_default_dtype()), str(torch.get_float32_matmul_precision()))  # of the whole process
    return LibraryValue("module", settings, followed, optional)


def _describe_image(image: Any) -> LibraryValue:
    try:
        content = image.tobytes()
    except Exception:  # a file that Pillow cannot read after all
        raise Unseen from None
    facts = [image.mode, str(image.size), hashlib.sha256(content).hexdigest()]
    if image.palette is not None:
        facts.append(hashlib.sha256(bytes(image.palette.palette)).hexdigest())
    return LibraryValue("image", tuple(facts), {"transparency": image.info.get("transparency")}, {"info": image.info})
