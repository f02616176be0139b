"""From the name a user writes to the endpoints behind it.

`provider/model@url` for our own and installed providers (entry points of the group `weft.models`), `file.py:name` for an object
of the user's, a name from `weft.toml`, `NAME:role=MODEL,role=MODEL` for a composition, or the object itself. A provider declares its
options (`options`); an unknown one is an error. `weft.models.config` reads weft.toml.
"""

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError, blamed
from weft.models.converters import finite, seconds
from weft.models.endpoint import Endpoint, TaskEndpoint
from weft.plugins import points
from weft.secrets import without_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

__all__ = ["finite", "seconds"]

if TYPE_CHECKING:
    from weft.models.compose.base import Composition

GROUP = "weft.models"
BUILT_IN: dict[str, tuple[str, str]] = {
    "openai": (
        "weft.models.providers.openai_chat:openai",
        "OpenAI's models, in words: openai/NAME, such as openai/gpt-4.1; or openai/NAME@URL",
    ),
    "openai-images": (
        "weft.models.providers.openai_images:from_spec",
        "any server that speaks OpenAI's image API, generations and edits: openai-images/NAME@URL",
    ),
    "openai-responses": (
        "weft.models.providers.openai_responses:from_spec",
        "OpenAI's Responses with the image tool: openai-responses/NAME or openai-responses/NAME@URL",
    ),
    "openai-chat": ("weft.models.providers.openai_chat:from_spec", "any server that speaks OpenAI chat completions: openai-chat/NAME@URL"),
    "gemini": (
        "weft.models.providers.gemini:from_spec",
        "Google's models, words and pictures in their order: gemini/NAME or gemini/NAME@URL",
    ),
    "openrouter": ("weft.models.providers.openrouter:from_spec", "many providers behind one key: openrouter/NAME or openrouter/NAME@URL"),
    "anthropic": ("weft.models.providers.anthropic:from_spec", "Anthropic's models, in words: anthropic/NAME or anthropic/NAME@URL"),
    "vllm-omni": ("weft.models.providers.vllm_omni:from_spec", "vLLM-Omni's chat: vllm-omni/NAME@URL"),
    "sglang": ("weft.models.providers.openai_chat:sglang", "SGLang's chat, in words: sglang/NAME@URL (pictures: openai-images)"),
    "dashscope": (
        "weft.models.providers.dashscope:from_spec",
        "Qwen-Image, and Wan with mode=task: dashscope/NAME or dashscope/NAME@URL",
    ),
    "ark": ("weft.models.providers.ark:from_spec", "Seedream on Ark: ark/NAME or ark/NAME@URL"),
    "bfl": ("weft.models.providers.bfl:from_spec", "FLUX of Black Forest Labs, as tasks: bfl/NAME or bfl/NAME@URL"),
    "xai": ("weft.models.providers.xai:from_spec", "xAI's pictures: xai/NAME or xai/NAME@URL"),
    "infer": ("weft.models.providers.infer:from_spec", "the /infer servers of IMUG-Bench's authors: infer/http://127.0.0.1:8000/infer"),
    "hf": ("weft.models.local.hf:from_spec", "weights for transformers, on this machine: hf/REPOSITORY or hf/FOLDER (extra local)"),
    "diffusers": (
        "weft.models.local.diffusion:from_spec",
        "pipelines of diffusers, on this machine: diffusers/REPOSITORY or diffusers/FOLDER (extra local)",
    ),
    "served": ("weft.models.providers.served:from_spec", "what `weft serve` serves, on one GPU or many: served/NAME@URL"),
    "folder": ("weft.benchmarks.outputs:from_spec", "pictures and texts made elsewhere, in the benchmark's own layout: folder/DIR"),
    "copy": ("weft.models.baselines:copy_from_spec", "returns the last picture it was shown: a floor"),
    "ocr": ("weft.judges.ocr:from_spec", "as a judge, decides key points that are plain words by reading them in the picture (extra ocr)"),
    "constant": (
        "weft.models.baselines:constant_from_spec",
        "as a judge, gives the same score to all: constant/10, constant/max",
    ),
}
KEY_BY_HOST = {  # whose keys go where; providers add their own
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "ark.cn-beijing.volces.com": "ARK_API_KEY",
    "api.eu.bfl.ai": "BFL_API_KEY",
    "api.us.bfl.ai": "BFL_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "ark.ap-southeast.bytepluses.com": "ARK_API_KEY",
    "api.bfl.ai": "BFL_API_KEY",
    "api.x.ai": "XAI_API_KEY",
}
OTHERS = "WEFT_API_KEY"  # any other address
AT = re.compile(r"@(?=https?://)", re.IGNORECASE)  # where a model's name ends and its address begins
HOSTS = re.compile(r"localhost|\[.*|\d+\.\d+\.\d+\.\d+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}")
PARTS = re.compile(r"(?P<name>.+?):(?P<parts>\w+=.+)", re.DOTALL)
F = TypeVar("F", bound=Callable[..., Any])


class Wired(Struct, frozen=True):
    """A model as a run wires it: the endpoints by role, and the composition that they play in, if there is more than the one."""

    name: str
    endpoints: Mapping[str, Endpoint]
    composition: "type[Composition] | None" = None


class Spec(Struct, frozen=True):
    """A parsed model name. `written` is what the user wrote; `given` are options from weft.toml and the command line; `data` is the
    dataset's folder."""

    written: str
    provider: str
    model: str
    url: str
    given: Mapping[str, Any]
    data: str = ""

    @property
    def text(self) -> str:
        """What the user wrote, for messages: without what may be secret in it."""
        return without_secrets(self.written)

    def take(self, known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """The options, each through its converter. Raises UserError for an unknown or unusable one."""
        taken: dict[str, Any] = {}
        for name, value in self.given.items():
            if name not in known:
                raise UserError(f"{self.text}: unknown option {name!r}; {self.provider} knows {', '.join(sorted(known)) or 'none'}")
            try:
                taken[name] = known[name](value)
            except (TypeError, ValueError, OverflowError) as error:
                why = "give a whole number" if known[name] is int else str(error)
                why = "give a number" if "could not convert" in why else why
                raise UserError(f"{self.text}: option {name}={value!r}: {why}") from None
        return taken


def options(**known: Callable[[Any], Any]) -> Callable[[F], F]:
    """Declares what a provider's `from_spec(spec, blobs, **options)` takes: each option with its converter, which raises ValueError."""

    def declare(make: F) -> F:
        make.options = known  # type: ignore[attr-defined]
        return make

    return declare


class About(Struct, frozen=True):
    """What is known of a provider's models before one is made: what they take and give, where they are, what must be installed."""

    takes: Takes = Takes()
    gives: Gives = Gives()
    url: str = ""  # where they are, unless the user says otherwise; nothing for what must be told an address, or has none
    extra: str = ""
    key: str = OTHERS  # the variable that holds the key; nothing where none goes with a request
    address: bool = False  # whether a user must say where they are
    several: bool = False  # whether the provider itself knows what to do with several addresses


def about(
    takes: Takes = Takes(),
    gives: Gives = Gives(),
    *,
    url: str = "",
    extra: str = "",
    key: str | None = None,
    address: bool = False,
    several: bool = False,
) -> Callable[[F], F]:
    """Declares what a provider's models can do, unless their options say otherwise. `key` is the variable for the key of its own host;
    any other address has another."""
    host = urlsplit(url).hostname or ""
    variable = key if key is not None else KEY_BY_HOST.get(host, OTHERS if url or address else "")
    ours = not host or not key or host in ("localhost", "127.0.0.1", "::1")
    if not ours and KEY_BY_HOST.setdefault(host, str(key)) != key:  # nobody says where another's key goes
        raise UserError(f"the key for {host} is in {KEY_BY_HOST[host]}: a provider cannot say that it is in {key}")

    def declare(make: F) -> F:
        make.about = About(takes, gives, url, extra, variable, address, several)  # type: ignore[attr-defined]
        return make

    return declare


def known_of(make: Any) -> About | None:
    """What a provider declared of its models."""
    return getattr(make, "about", None)


def split_address(text: str) -> tuple[str, str]:
    """A model's name and its address, if it has one. Raises UserError for what looks like an address and does not say how it is spoken to:
    it would be taken for a part of the name, and the request sent to somebody else."""
    found = [match.start() for match in AT.finditer(text)]
    if found:
        return text[: found[-1]], text[found[-1] + 1 :]
    name, sign, tail = text.rpartition("@")
    host = re.split("[/:]", tail)[0]
    if sign and not text.startswith("infer/") and not tail.startswith("preset/") and ("/" in tail or ":" in tail or HOSTS.fullmatch(host)):
        told = without_secrets(name), without_secrets(tail.rpartition("://")[2])
        raise UserError(f"{told[0]}@{told[1]}: an address begins with http:// or https://, as in {told[0]}@http://{told[1]}")
    return text, ""


def parse(text: str, given: Mapping[str, Any] | None = None, data: str = "") -> Spec:
    name, url = split_address(text)
    provider, _, model = name.partition("/")
    return Spec(text, provider, model, url, given or {}, data)


def providers() -> dict[str, tuple[str, str]]:
    """Every provider that can be named: name -> (target, what it is)."""
    found = dict(BUILT_IN)
    for point in points(GROUP):
        if point.name not in BUILT_IN:  # nobody takes over a name of ours unseen
            found[point.name] = (point.value, f"from {point.dist.name}" if point.dist else "installed")
    return found


def wired(
    model: Any,
    blobs: Blobs,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    outputs: Callable[[Path, Blobs], Endpoint] | None = None,
    preset: str = "",
) -> Wired:
    """A model from its name or the user's own object; `outputs` reads a folder of outputs in a benchmark's own layout."""
    match = PARTS.fullmatch(model) if isinstance(model, str) else None
    if match is not None:
        if preset:
            raise UserError(f"the preset {preset} is for one model, and {match['name']} is made of several: give its parts their options")
        return load_target("weft.models.compose:composed")(match, blobs, given or {}, config, data)
    if outputs is not None and isinstance(model, str) and model.startswith("folder/"):
        endpoint = outputs(Path(model.removeprefix("folder/")), blobs)
    else:
        endpoint = resolve(model, blobs, given, config, data, preset=preset)
    return Wired(endpoint.name, {"model": endpoint})


def resolve(
    model: Any,
    blobs: Blobs,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    usual: Mapping[str, Any] | None = None,
    preset: str = "",
    called: str = "",
) -> Endpoint:
    """An endpoint from a name or from the user's own object; `data` is the dataset's folder, for judges that know its truth. `usual` are
    options for those that have them, where nobody says otherwise; those of a `preset` come before them. `called` is its name
    in weft.toml."""
    from weft.models.function import endpoint_from_object
    from weft.models.presets import preset as settings_of

    given = dict(given or {})
    if not isinstance(model, str):
        return endpoint_from_object(model, blobs, {**(settings_of(preset).settings if preset else {}), **given})
    defined: Mapping[str, Any] = (config or {}).get("models", {})
    if model in defined:
        entry = dict(defined[model])
        if "use" not in entry:
            raise UserError(f'weft.toml: [models.{model}] has no `use`; give it one, such as use = "openai-chat/NAME@URL"')
        return resolve(entry.pop("use"), blobs, {**entry, **given}, {}, data, usual, preset, model)
    if ".py:" in model:
        file, _, rest = model.partition(".py:")
        name, _, behind = rest.partition("/")
        thing = load_object(f"{file}.py:{name}") if behind else load_object(model)
        if declared(thing) or known_of(thing) is not None:  # a provider of the user's own, named by its file
            named, url = split_address(behind)
            return _made(thing, Spec(model, f"{file}.py:{name}", named, url, given, data), given, blobs, usual, preset, called)
        settings = settings_of(preset).settings if preset else {}
        return endpoint_from_object(thing, blobs, {**settings, **given}, source=model)
    if model.endswith(".py") and Path(model).is_file():
        load_object(f"{model}:")  # which says what there is in it
    spec = parse(model, given, data)
    known = providers()
    if spec.provider not in known:
        for file, kind in (("config.json", "hf"), ("model_index.json", "diffusers")):
            if (Path(model) / file).is_file():
                raise UserError(f"{spec.text} is a folder of weights: write {kind}/{spec.text}")
        names = ", ".join(sorted([*known, *defined, "truth"]))
        near = difflib.get_close_matches(model, [*defined, *known], 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UserError(f"unknown model {spec.text!r}; {meant}known: {names}; or file.py:NAME for your own")
    return _made(provider(spec.provider), spec, given, blobs, usual, preset, called)


def provider(name: str) -> Any:
    """What makes a provider's models. Raises UserError where an installed one cannot be imported."""
    target = providers()[name][0]
    try:
        return load_target(target)
    except Exception as error:
        raise UserError(f"the provider {name} cannot be imported from {target}: {type(error).__name__}: {error}") from error


def _made(
    make: Any, spec: Spec, given: dict[str, Any], blobs: Blobs, usual: Mapping[str, Any] | None, preset: str, called: str = ""
) -> Endpoint:
    """An endpoint of a provider's, at one address or several, under a name and a version of its own where it has them."""
    from weft.models.identity import own, settle
    from weft.models.load_balancer import Spread

    mine = {name: given[name] for name in ("name", "version") if name in given and name not in declared(make)}
    given = {name: value for name, value in given.items() if name not in mine}
    if "name" in mine and "version" not in mine:
        raise UserError(f"{spec.text}: a name is for keeping answers, together with a version: --model-opt version=...")
    several = spec.url.split(",") if not (known_of(make) or About()).several else [spec.url]
    if len(several) > 1 and not all(url.strip() for url in several):
        raise UserError(f"{spec.text}: there is no address behind a comma; write NAME@http://HOST:PORT/v1,http://HOST:PORT/v1")
    found: list[Endpoint] = []
    for url in several:
        at = replace(spec, url=url.strip(), written=spec.written if len(several) == 1 else f"{spec.provider}/{spec.model}@{url.strip()}")
        found.append(settle(_one(make, at, given, blobs, usual, preset)))
    if len(found) > 1 and any(isinstance(one, TaskEndpoint) for one in found):
        raise UserError(f"{spec.text}: what is handed in and collected later must be asked for where it was handed in: give one address")
    if "version" in mine:
        found = [own(one, str(mine.get("name", called)), str(mine["version"])) for one in found]
    return found[0] if len(found) == 1 else Spread(found)


def _one(make: Any, spec: Spec, given: dict[str, Any], blobs: Blobs, usual: Mapping[str, Any] | None, preset: str) -> Endpoint:
    from weft.models.presets import placed

    taken = declared(make)
    given = placed(preset, taken, given, spec.text) if preset else given
    spec = replace(spec, given={**{name: value for name, value in (usual or {}).items() if name in taken}, **given})
    try:
        made: Any = make(spec, blobs, **spec.take(taken))
    except (WeftError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise blamed(f"{spec.text}: the provider {spec.provider}", error) from error
    if not isinstance(made, Endpoint):
        raise UserError(f"{spec.text}: the provider {spec.provider} made {type(made).__name__}, and no Endpoint")
    return made


def declared(make: Any) -> Mapping[str, Callable[[Any], Any]]:
    """The options that a provider declared."""
    return getattr(make, "options", {})


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
    if not name or not hasattr(module, name):
        own = [n for n, one in vars(module).items() if not n.startswith("_") and getattr(one, "__module__", "") == module.__name__]
        names = ", ".join(own) or "nothing of its own"
        raise UserError(
            f"{text}: {file} has no {name!r} (it has {names})" if name else f"{file}: say which, as in {file}:NAME; it has {names}"
        )
    return getattr(module, name)
