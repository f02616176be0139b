"""From what a user writes to the endpoints behind it: `parse_model` says what is meant, a `ModelSpec`; `build` makes
it.

`provider/model@url` for our own and installed providers (entry points of the group `weft.models`), `file.py:name` for
an object of the user's, a name from `weft.toml`, `NAME:role=MODEL,role=MODEL` for a composition, or the object itself.
A provider declares its options (`options`) and what its models can do (`about`); an unknown option is an error.
`weft.models.config` reads weft.toml."""

import difflib
import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError, wrap_error
from weft.models.endpoint import Endpoint, TaskEndpoint
from weft.models.providers import BUILT_IN
from weft.plugins import find_entry_points, load_object, load_target
from weft.secrets import strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

if TYPE_CHECKING:
    from weft.models.compose.base import Composition

GROUP = "weft.models"
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
DEFAULT_KEY_VARIABLE = "WEFT_API_KEY"  # any other address
ADDRESS_SEPARATOR = re.compile(r"@(?=https?://)", re.IGNORECASE)  # where a model's name ends and its address begins
HOST_PATTERN = re.compile(r"localhost|\[.*|\d+\.\d+\.\d+\.\d+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}")
COMPOSITION_PATTERN = re.compile(r"(?P<name>.+?):(?P<parts>\w+=.+)", re.DOTALL)
Converters = Mapping[str, Callable[[Any], Any]]


# what a provider declares


class ProviderInfo(Struct, frozen=True):
    """What is known of a provider's models before one is made: what they take and give, where they are, what must be
    installed."""

    takes: Takes = Takes()
    gives: Gives = Gives()
    # where they are, unless the user says otherwise; nothing for what must be told an address, or has none
    url: str = ""
    extra: str = ""
    key: str = DEFAULT_KEY_VARIABLE  # the variable that holds the key; nothing where none goes with a request
    address: bool = False  # whether a user must say where they are
    several: bool = False  # whether the provider itself knows what to do with several addresses


class Provider:
    """What makes a provider's models, `from_spec(spec, blobs, **options)`, with what it declares: its options, each
    with its converter, and what is known of its models. A function that was decorated by `about` or `options` is
    one."""

    def __init__(self, make: Callable[..., Any], options: Converters, info: ProviderInfo | None) -> None:
        functools.update_wrapper(self, make)
        self.make: Callable[..., Any] = make.make if isinstance(make, Provider) else make
        self.options = options
        self.about = info

    def __call__(self, spec: "ModelSpec", blobs: Blobs, **chosen: Any) -> Any:
        return self.make(spec, blobs, **chosen)


def provider_options(**known: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Provider]:
    """Declares what a provider's `from_spec(spec, blobs, **options)` takes: each option with its converter, which
    raises ValueError."""
    return lambda make: Provider(make, known, info_of(make))


def provider_info(
    takes: Takes = Takes(),
    gives: Gives = Gives(),
    *,
    url: str = "",
    extra: str = "",
    key: str | None = None,
    address: bool = False,
    several: bool = False,
) -> Callable[[Callable[..., Any]], Provider]:
    """Declares what a provider's models can do, unless their options say otherwise. `key` is the variable for the key
    of its own host; any other address has another."""
    host = urlsplit(url).hostname or ""
    if key is not None:
        variable = key
    else:
        variable = KEY_BY_HOST.get(host, DEFAULT_KEY_VARIABLE if url or address else "")
    ours = not host or not key or host in ("localhost", "127.0.0.1", "::1")
    if not ours and KEY_BY_HOST.setdefault(host, str(key)) != key:  # nobody says where another's key goes
        raise UserError(f"the key for {host} is in {KEY_BY_HOST[host]}: a provider cannot say that it is in {key}")

    facts = ProviderInfo(takes, gives, url, extra, variable, address, several)
    return lambda make: Provider(make, options_of(make), facts)


def info_of(make: Any) -> ProviderInfo | None:
    """What a provider declared of its models."""
    if isinstance(make, Provider):
        return make.about
    return None


def options_of(make: Any) -> Converters:
    """The options that a provider declared."""
    if isinstance(make, Provider):
        return make.options
    return {}


def list_providers() -> dict[str, tuple[str, str]]:
    """Every provider that can be named: name -> (target, what it is)."""
    found = dict(BUILT_IN)
    for point in find_entry_points(GROUP):
        if point.name not in BUILT_IN:  # nobody takes over a name of ours unseen
            found[point.name] = (point.value, f"from {point.dist.name}" if point.dist else "installed")
    return found


def load_provider(name: str) -> Provider:
    """What makes a provider's models. Raises UserError where an installed one cannot be imported."""
    target = (BUILT_IN.get(name) or list_providers()[name])[0]
    try:
        made = load_target(target)
    except Exception as error:
        raise UserError(
            f"the provider {name} cannot be imported from {target}: {type(error).__name__}: {error}"
        ) from error
    if isinstance(made, Provider):
        return made
    return Provider(made, {}, None)


# what a user means


class ModelSpec(Struct, frozen=True):
    """What a user means by a model: a provider's, at one address or several; an object of the user's own (`thing`); or
    a composition and the models that play in it (`parts`)."""

    source_text: str  # by the user; nothing for an object
    provider: str = ""
    model: str = ""
    url: str = ""  # several have commas between them
    # options: those of the command line before weft.toml, the preset, and what is usual
    options: Mapping[str, Any] = {}
    data: str = ""  # the dataset's folder
    name: str = ""  # of its own, under which answers are cached together with its version
    version: str | None = None
    factory: Provider | None = None
    user_object: Any = None
    composition: "type[Composition] | None" = None
    role_specs: "Mapping[str, ModelSpec]" = {}  # by role

    @property
    def text(self) -> str:
        """What the user wrote, for messages: without what may be secret in it."""
        return strip_url_secrets(self.source_text)

    def convert_options(self, known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """The options, each through its converter. Raises UserError for an unknown or unusable one."""
        taken: dict[str, Any] = {}
        for name, value in self.options.items():
            if name not in known:
                raise UserError(
                    f"{self.text}: unknown option {name!r}; {self.provider} knows {', '.join(sorted(known)) or 'none'}"
                )
            try:
                taken[name] = known[name](value)
            except (TypeError, ValueError, OverflowError) as error:
                if known[name] is int:
                    why = "give a whole number"
                else:
                    why = str(error)
                if "could not convert" in why:
                    why = "give a number"
                raise UserError(f"{self.text}: option {name}={value!r}: {why}") from None
        return taken


def split_address(text: str) -> tuple[str, str]:
    """A model's name and its address, if it has one. Raises UserError for what looks like an address and does not say
    how it is spoken to: it would be taken for a part of the name, and the request sent to somebody else."""
    found = [match.start() for match in ADDRESS_SEPARATOR.finditer(text)]
    if found:
        return text[: found[-1]], text[found[-1] + 1 :]
    name, sign, tail = text.rpartition("@")
    host = re.split("[/:]", tail)[0]
    if (
        sign
        and not text.startswith("infer/")
        and not tail.startswith("preset/")
        and ("/" in tail or ":" in tail or HOST_PATTERN.fullmatch(host))
    ):
        told = strip_url_secrets(name), strip_url_secrets(tail.rpartition("://")[2])
        raise UserError(
            f"{told[0]}@{told[1]}: an address begins with http:// or https://, as in {told[0]}@http://{told[1]}"
        )
    return text, ""


def parse_name(text: str, given: Mapping[str, Any] | None = None, data: str = "") -> ModelSpec:
    """`provider/model@url`, taken apart."""
    name, url = split_address(text)
    provider, _, model = name.partition("/")
    return ModelSpec(text, provider, model, url, given or {}, data)


def parse_model(
    model: Any,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    preset: str = "",
) -> ModelSpec:
    """What a name, an entry of weft.toml, a composition or an object means. Raises UserError for what means nothing."""
    if isinstance(model, str):
        match = COMPOSITION_PATTERN.fullmatch(model)
    else:
        match = None
    if match is None:
        return _parse_one(model, given or {}, config or {}, data, {}, preset)
    if preset:
        raise UserError(
            f"the preset {preset} is for one model, and {match['name']} is made of several: give its parts their options"
        )
    return _parse_composition(match, given or {}, config or {}, data)


def _parse_composition(
    match: re.Match[str], given: Mapping[str, Any], config: Mapping[str, Any], data: str
) -> ModelSpec:
    """`NAME:role=MODEL,role=MODEL`; an option `painter.steps` is the painter's."""
    from weft.models.compose import load_composition

    kind = load_composition(match["name"])
    models = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", match["parts"]))
    if set(models) != set(kind.roles):
        example = f"{match['name']}:{','.join(f'{role}=MODEL' for role in kind.roles)}"
        raise UserError(
            f"{strip_url_secrets(match.string)}: {match['name']} has the roles {', '.join(kind.roles)}; give each a model, as in {example}"
        )
    for name in given:
        if name.partition(".")[0] not in kind.roles or "." not in name:
            raise UserError(f"option {name!r}: say whose it is, as in {kind.roles[-1]}.{name.rpartition('.')[2]}=...")
    parts: dict[str, ModelSpec] = {}
    for role in kind.roles:
        own = {name[len(role) + 1 :]: value for name, value in given.items() if name.startswith(f"{role}.")}
        parts[role] = _parse_one(models[role], own, config, data, {}, "")
    return ModelSpec(match.string, composition=kind, role_specs=parts)


def _parse_one(
    model: Any,
    given: Mapping[str, Any],
    config: Mapping[str, Any],
    data: str,
    usual: Mapping[str, Any],
    preset: str,
    called: str = "",
) -> ModelSpec:
    """What one endpoint is made of; `called` is its name in weft.toml."""
    if not isinstance(model, str):
        return ModelSpec("", options=_under_preset(preset, given), user_object=model)
    defined: Mapping[str, Any] = config.get("models", {})
    if model in defined:
        entry = dict(defined[model])
        if "use" not in entry:
            raise UserError(
                f'weft.toml: [models.{model}] has no `use`; give it one, such as use = "openai-chat/NAME@URL"'
            )
        return _parse_one(entry.pop("use"), {**entry, **given}, {}, data, usual, preset, model)
    if ".py:" in model:
        file, _, rest = model.partition(".py:")
        name, _, behind = rest.partition("/")
        if behind:
            thing = load_object(f"{file}.py:{name}")
        else:
            thing = load_object(model)
        if not isinstance(thing, Provider):
            return ModelSpec(model, options=_under_preset(preset, given), user_object=thing)
        named, url = split_address(behind)  # a provider of the user's own, named by its file
        return _with_options(
            ModelSpec(model, f"{file}.py:{name}", named, url, given, data), thing, usual, preset, called
        )
    if model.endswith(".py") and Path(model).is_file():
        load_object(f"{model}:")  # which says what there is in it
    spec = parse_name(model, given, data)
    if spec.provider not in BUILT_IN and spec.provider not in list_providers():
        raise _unknown(spec, defined)
    return _with_options(spec, load_provider(spec.provider), usual, preset, called)


def _under_preset(preset: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    from weft.models.presets import find_preset as settings_of

    if preset:
        return {**settings_of(preset).settings, **given}
    return given


def _unknown(spec: ModelSpec, defined: Mapping[str, Any]) -> UserError:
    for file, kind in (("config.json", "hf"), ("model_index.json", "diffusers")):
        if (Path(spec.source_text) / file).is_file():
            return UserError(f"{spec.text} is a folder of weights: write {kind}/{spec.text}")
    known = list_providers()
    names = ", ".join(sorted([*known, *defined, "reference"]))
    near = difflib.get_close_matches(spec.source_text, [*defined, *known], 1)
    if near:
        meant = f"did you mean {near[0]}? "
    else:
        meant = ""
    return UserError(f"unknown model {spec.text!r}; {meant}known: {names}; or file.py:NAME for your own")


def _with_options(spec: ModelSpec, maker: Provider, usual: Mapping[str, Any], preset: str, called: str) -> ModelSpec:
    """With the options of the preset and what is usual, and a name and a version of its own where it has them."""
    from weft.models.presets import apply_preset

    own = {
        name: spec.options[name] for name in ("name", "version") if name in spec.options and name not in maker.options
    }
    given = {name: value for name, value in spec.options.items() if name not in own}
    if "name" in own and "version" not in own:
        raise UserError(f"{spec.text}: a name is for keeping answers, together with a version: --model-opt version=...")
    if (
        "," in spec.url
        and not all(url.strip() for url in spec.url.split(","))
        and not (maker.about and maker.about.several)
    ):
        raise UserError(
            f"{spec.text}: there is no address behind a comma; write NAME@http://HOST:PORT/v1,http://HOST:PORT/v1"
        )
    if preset:
        given = apply_preset(preset, maker.options, given, spec.text)
    given = {**{name: value for name, value in usual.items() if name in maker.options}, **given}
    if "version" in own:
        version = str(own["version"])
    else:
        version = None
    return replace(spec, options=given, name=str(own.get("name", called)), version=version, factory=maker)


# endpoints


class ResolvedModel(Struct, frozen=True):
    """A model as a run wires it: the endpoints by role, and the composition that they play in, if there is more than
    the one."""

    name: str
    endpoints: Mapping[str, Endpoint]
    composition: "type[Composition] | None" = None


def resolve_model(
    model: Any,
    blobs: Blobs,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    outputs: Callable[[Path, Blobs], Endpoint] | None = None,
    preset: str = "",
) -> ResolvedModel:
    """A model from its name or the user's own object; `outputs` reads a folder of outputs in a benchmark's own
    layout."""
    if outputs is not None and isinstance(model, str) and model.startswith("folder/"):
        endpoint = outputs(Path(model.removeprefix("folder/")), blobs)
        return ResolvedModel(endpoint.name, {"model": endpoint})
    return build_model(parse_model(model, given, config, data, preset), blobs)


def resolve_endpoint(
    model: Any,
    blobs: Blobs,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    usual: Mapping[str, Any] | None = None,
    preset: str = "",
) -> Endpoint:
    """One endpoint from a name or from the user's own object; `data` is the dataset's folder, for judges that know its
    reference answers. `usual` are options for those that have them, where nobody says otherwise; those of a `preset`
    come before them."""
    return _build_one(_parse_one(model, given or {}, config or {}, data, usual or {}, preset), blobs)


def build_model(spec: ModelSpec, blobs: Blobs) -> ResolvedModel:
    """The endpoints that a specification means. Nothing is loaded and nobody is called yet."""
    if spec.composition is not None:
        return ResolvedModel(
            spec.text, {role: _build_one(part, blobs) for role, part in spec.role_specs.items()}, spec.composition
        )
    endpoint = _build_one(spec, blobs)
    return ResolvedModel(endpoint.name, {"model": endpoint})


def _build_one(spec: ModelSpec, blobs: Blobs) -> Endpoint:
    """An object of the user's, or a provider's model at one address or several."""
    from weft.models.function import endpoint_from_object
    from weft.models.load_balancer import LoadBalancer

    if spec.factory is None:
        return endpoint_from_object(spec.user_object, blobs, spec.options, source=spec.source_text)
    urls = [url.strip() for url in spec.url.split(",")]
    if len(urls) == 1 or (spec.factory.about and spec.factory.about.several):
        return _at_one_address(replace(spec, url=spec.url.strip()), spec.factory, blobs)
    found = [
        _at_one_address(replace(spec, url=url, source_text=f"{spec.provider}/{spec.model}@{url}"), spec.factory, blobs)
        for url in urls
    ]
    if any(isinstance(one, TaskEndpoint) for one in found):
        raise UserError(
            f"{spec.text}: what is handed in and collected later must be asked for where it was handed in: give one address"
        )
    return LoadBalancer(found)


def _at_one_address(spec: ModelSpec, maker: Provider, blobs: Blobs) -> Endpoint:
    try:
        made: Any = maker.make(spec, blobs, **spec.convert_options(maker.options))
    except (WeftError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise wrap_error(f"{spec.text}: the provider {spec.provider}", error) from error
    if not isinstance(made, Endpoint):
        raise UserError(f"{spec.text}: the provider {spec.provider} made {type(made).__name__}, and no Endpoint")
    if spec.version is None:
        made.normalise_addresses()
    else:
        made.identify_as(spec.name, spec.version)
    return made
