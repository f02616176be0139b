"""From the name a user writes to an endpoint.

`provider/model@url` for our own and installed providers (entry points of the group `weft.models`), `file.py:name` for an object
of the user's, a name from `weft.toml`, or the object itself. Options are checked by the provider; an unknown one is an error.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs

GROUP = "weft.models"
BUILT_IN: dict[str, tuple[str, str]] = {
    "openai-chat": ("weft.models.openai_chat:from_spec", "any server that speaks OpenAI chat completions: openai-chat/NAME@URL"),
    "infer": ("weft.models.infer:from_spec", "the /infer servers of IMUG-Bench's authors: infer/http://127.0.0.1:8000/infer"),
    "folder": ("weft.benchmarks.outputs:from_spec", "pictures and texts made elsewhere, in the benchmark's own layout: folder/DIR"),
    "copy": ("weft.models.baselines:copy_from_spec", "returns the last picture it was shown: a floor"),
    "tabletop": (
        "weft.tabletop.endpoints:from_spec",
        "tabletop/tiny, tabletop/tiny-single, tabletop/oracle; as a judge tabletop/exact: no key, no network",
    ),
    "constant": ("weft.models.baselines:constant_from_spec", "as a judge, gives the same score to all: constant/10"),
}


class Spec(Struct, frozen=True):
    """A parsed model name. `text` is what the user wrote; `options` come from weft.toml and the command line; `data` is the
    dataset's folder."""

    text: str
    provider: str
    model: str
    url: str
    options: Mapping[str, Any]
    data: str = ""

    def take(self, known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """The options, each through its converter. Raises UserError for an unknown or unusable one."""
        taken: dict[str, Any] = {}
        for name, value in self.options.items():
            if name not in known:
                raise UserError(f"{self.text}: unknown option {name!r}; {self.provider} knows {', '.join(sorted(known)) or 'none'}")
            try:
                taken[name] = known[name](value)
            except (TypeError, ValueError) as error:
                raise UserError(f"{self.text}: option {name}={value!r}: {error}") from None
        return taken


def parse(text: str, options: Mapping[str, Any] | None = None, data: str = "") -> Spec:
    name, _, url = text.partition("@") if "@http" in text else (text, "", "")
    provider, _, model = name.partition("/")
    return Spec(text, provider, model, url, options or {}, data)


def providers() -> dict[str, tuple[str, str]]:
    """Every provider that can be named: name -> (target, what it is)."""
    found = dict(BUILT_IN)
    for point in importlib.metadata.entry_points(group=GROUP):
        found[point.name] = (point.value, f"from {point.dist.name}" if point.dist else "installed")
    return found


def resolve(
    model: Any, blobs: Blobs, options: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None, data: str = ""
) -> Endpoint:
    """An endpoint from a name or from the user's own object; `data` is the dataset's folder, for judges that know its truth."""
    from weft.models.function import endpoint_from_object

    options = dict(options or {})
    if not isinstance(model, str):
        return endpoint_from_object(model, blobs, options)
    defined: Mapping[str, Any] = (config or {}).get("models", {})
    if model in defined:
        entry = dict(defined[model])
        if "use" not in entry:
            raise UserError(f'weft.toml: [models.{model}] has no `use`; give it one, such as use = "openai-chat/NAME@URL"')
        return resolve(entry.pop("use"), blobs, {**entry, **options}, {}, data)
    if ".py:" in model:
        return endpoint_from_object(load_object(model), blobs, options, source=model)
    spec = parse(model, options, data)
    known = providers()
    if spec.provider not in known:
        names = ", ".join(sorted([*known, *defined, "truth"]))
        raise UserError(f"unknown model {model!r}; known: {names}; or file.py:NAME for your own")
    return load_target(known[spec.provider][0])(spec, blobs)


def load_target(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def load_object(text: str) -> Any:
    """`path/file.py:name`, imported from that path."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{text}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(f"weft_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{text}: {file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{text}: importing {file} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        names = ", ".join(n for n in vars(module) if not n.startswith("_"))
        raise UserError(f"{text}: {file} has no {name!r} (it has {names})")
    return getattr(module, name)
