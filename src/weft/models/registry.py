"""From what a user writes to endpoints: `parse_model` returns a `ModelSpec`, `build_model` its endpoints.

A model is named by `provider/model@url` (built-in providers, and installed ones by the entry points `weft.models`),
`file.py:name` (the user's own object), a name from `weft.toml`, or `NAME:role=MODEL,role=MODEL` (a composition); or it
is the object itself. A provider declares its options (`provider_options`) and what its models can do (`provider_info`);
an unknown option is an error. `weft.models.config` reads weft.toml.
"""

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
from weft.plugins import find_entry_points, load_object, load_target, suggest_name
from weft.secrets import strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

if TYPE_CHECKING:
    from weft.models.compose.base import Composition

GROUP = "weft.models"
KEY_BY_HOST = {  # the variable of each provider's key; providers add their own hosts
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
DEFAULT_KEY_VARIABLE = "WEFT_API_KEY"  # for any other host
NAMES_WITH_AT = ("infer/", "tabletop/")  # providers in whose names an @ stands before something else
ADDRESS_SEPARATOR = re.compile(r"@(?=https?://)", re.IGNORECASE)  # where a model's name ends and its address begins
HOST_PATTERN = re.compile(r"localhost|\[.*|\d+\.\d+\.\d+\.\d+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}")
REFERENCE = "reference"  # the model that replies with the dataset's references; also as a role of a composition
REFERENCE_TARGET = "weft.models.baselines:reference_role_from_spec"
COMPOSITION_PATTERN = re.compile(r"(?P<name>.+?):(?P<parts>\w+=.+)", re.DOTALL)
Converters = Mapping[str, Callable[[Any], Any]]


# what a provider declares


class ProviderInfo(Struct, frozen=True):
    """What is known about a provider's models before one is built."""

    takes: Takes = Takes()
    gives: Gives = Gives()
    url: str = ""  # the default address; "" if the user must give one, or there is none
    extra: str = ""  # the extra of the package that must be installed
    key: str = DEFAULT_KEY_VARIABLE  # the variable that holds the key; "" if no key is sent
    address: bool = False  # whether the user must give an address
    several: bool = False  # whether the provider itself handles several addresses


class Provider:
    """Builds a provider's models by `from_spec(spec, blobs, **options)`, and holds what it declares.

    The decorators `provider_info` and `provider_options` turn a function into one.
    """

    def __init__(self, make: Callable[..., Any], options: Converters, info: ProviderInfo | None) -> None:
        functools.update_wrapper(self, make)
        self.make: Callable[..., Any] = make.make if isinstance(make, Provider) else make
        self.options = options
        self.info = info

    @property
    def handles_several_addresses(self) -> bool:
        return self.info is not None and self.info.several

    def __call__(self, spec: "ModelSpec", blobs: Blobs, **options: Any) -> Any:
        return self.make(spec, blobs, **options)


def provider_options(**converters: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Provider]:
    """Declare the options of `from_spec`, each with its converter, which raises ValueError."""
    return lambda make: Provider(make, converters, info_of(make))


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
    """Declare what a provider's models can do. `key` is the variable of the key for the host of `url` alone."""
    host = urlsplit(url).hostname or ""
    variable = key
    if variable is None:
        variable = KEY_BY_HOST.get(host, DEFAULT_KEY_VARIABLE if url or address else "")
    is_remote = host not in ("", "localhost", "127.0.0.1", "::1")
    # a provider must not choose which key another provider's host gets
    if is_remote and key and KEY_BY_HOST.setdefault(host, key) != key:
        raise UserError(f"the key for {host} is in {KEY_BY_HOST[host]}: a provider cannot say that it is in {key}")
    info = ProviderInfo(takes, gives, url, extra, variable, address, several)
    return lambda make: Provider(make, options_of(make), info)


def info_of(make: Any) -> ProviderInfo | None:
    """Return what a provider declared about its models."""
    if isinstance(make, Provider):
        return make.info
    return None


def options_of(make: Any) -> Converters:
    """Return the options that a provider declared, by name."""
    if isinstance(make, Provider):
        return make.options
    return {}


def list_providers() -> dict[str, tuple[str, str]]:
    """Return every provider by name: (target, description). An installed one cannot replace a built-in one."""
    providers = dict(BUILT_IN)
    for point in find_entry_points(GROUP):
        if point.name not in BUILT_IN:
            description = f"from {point.dist.name}" if point.dist else "installed"
            providers[point.name] = (point.value, description)
    return providers


def load_provider(name: str) -> Provider:
    """Import a provider. Raises UserError if an installed one cannot be imported."""
    target, _ = BUILT_IN.get(name) or list_providers()[name]
    try:
        provider = load_target(target)
    except Exception as error:
        raise UserError(
            f"the provider {name} cannot be imported from {target}: {type(error).__name__}: {error}"
        ) from error
    if isinstance(provider, Provider):
        return provider
    return Provider(provider, {}, None)


# what a user means


class ModelSpec(Struct, frozen=True):
    """What a user means by a model: a provider's model, the user's own object, or a composition of models."""

    source_text: str  # what the user wrote; "" for an object
    provider: str = ""
    model: str = ""
    url: str = ""  # several are separated by commas
    options: Mapping[str, Any] = {}  # the command line overrides weft.toml, that the preset, and that the defaults
    data: str = ""  # the dataset's folder
    name: str = ""  # the user's own name, part of cache keys together with the version
    version: str | None = None
    factory: Provider | None = None  # builds it; None for an object or a composition
    user_object: Any = None
    composition: "type[Composition] | None" = None
    role_specs: "Mapping[str, ModelSpec]" = {}  # of a composition, by role

    @property
    def text(self) -> str:
        """What the user wrote, without secrets, for messages."""
        return strip_url_secrets(self.source_text)

    def convert_options(self, known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """Return the options, each through its converter. Raises UserError for an unknown or unusable one."""
        converted: dict[str, Any] = {}
        for name, value in self.options.items():
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise UserError(f"{self.text}: unknown option {name!r}; {self.provider} knows {names}")
            try:
                converted[name] = known[name](value)
            except (TypeError, ValueError, OverflowError) as error:
                advice = str(error)
                if known[name] is int:
                    advice = "give a whole number"
                elif "could not convert" in advice:
                    advice = "give a number"
                raise UserError(f"{self.text}: option {name}={value!r}: {advice}") from None
        return converted


def split_address(text: str) -> tuple[str, str]:
    """Return a model's name and its address, or "" if it has none.

    Raises UserError for what looks like an address without http(s): it would be taken for a part of the name, and the
    request would be sent to another host.
    """
    separators = [match.start() for match in ADDRESS_SEPARATOR.finditer(text)]
    if separators:
        return text[: separators[-1]], text[separators[-1] + 1 :]
    name, separator, tail = text.rpartition("@")
    if (
        separator
        and not text.startswith(NAMES_WITH_AT)
        and not tail.startswith("preset/")
        and _looks_like_address(tail)
    ):
        name = strip_url_secrets(name)
        address = strip_url_secrets(tail.rpartition("://")[2])
        raise UserError(f"{name}@{address}: an address begins with http:// or https://, as in {name}@http://{address}")
    return text, ""


def _looks_like_address(text: str) -> bool:
    host = re.split("[/:]", text)[0]
    return "/" in text or ":" in text or HOST_PATTERN.fullmatch(host) is not None


def parse_name(text: str, given: Mapping[str, Any] | None = None, data: str = "") -> ModelSpec:
    """Parse `provider/model@url`."""
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
    """Parse a name, an entry of weft.toml, a composition or an object. `given` are the user's options.

    Raises UserError for an unknown model or unusable options.
    """
    match = COMPOSITION_PATTERN.fullmatch(model) if isinstance(model, str) else None
    if match is None:
        return _parse_single(model, given or {}, config or {}, data, {}, preset)
    if preset:
        raise UserError(
            f"the preset {preset} is for one model, and {match['name']} is made of several: "
            "give its parts their options"
        )
    return _parse_composition(match, given or {}, config or {}, data)


def _parse_composition(
    match: re.Match[str], given: Mapping[str, Any], config: Mapping[str, Any], data: str
) -> ModelSpec:
    """Parse `NAME:role=MODEL,role=MODEL`; an option `painter.steps` is an option of the painter."""
    from weft.models.compose import load_composition

    composition = load_composition(match["name"])
    roles = composition.roles
    models = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", match["parts"]))
    if set(models) != set(roles):
        example = f"{match['name']}:{','.join(f'{role}=MODEL' for role in roles)}"
        raise UserError(
            f"{strip_url_secrets(match.string)}: {match['name']} has the roles {', '.join(roles)}; "
            f"give each a model, as in {example}"
        )
    for name in given:
        if name.partition(".")[0] not in roles or "." not in name:
            raise UserError(f"option {name!r}: say whose it is, as in {roles[-1]}.{name.rpartition('.')[2]}=...")
    role_specs: dict[str, ModelSpec] = {}
    for role in roles:
        prefix = f"{role}."
        options = {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}
        if models[role] == REFERENCE and not options:
            role_specs[role] = ModelSpec(REFERENCE, REFERENCE, factory=load_target(REFERENCE_TARGET))
            continue
        role_specs[role] = _parse_single(models[role], options, config, data, {}, "")
    return ModelSpec(match.string, composition=composition, role_specs=role_specs)


def _parse_single(
    model: Any,
    given: Mapping[str, Any],
    config: Mapping[str, Any],
    data: str,
    usual: Mapping[str, Any],
    preset: str,
    called: str = "",
) -> ModelSpec:
    """Parse a model of one endpoint; `called` is its name in weft.toml."""
    if not isinstance(model, str):
        return ModelSpec("", options=_merge_preset(preset, given, model, ""), user_object=model)
    configured: Mapping[str, Any] = config.get("models", {})
    if model in configured:
        entry = dict(configured[model])
        if "use" not in entry:
            raise UserError(
                f'weft.toml: [models.{model}] has no `use`; give it one, such as use = "openai-chat/NAME@URL"'
            )
        return _parse_single(entry.pop("use"), {**entry, **given}, {}, data, usual, preset, model)
    if ".py:" in model:
        return _parse_python(model, given, data, usual, preset, called)
    if model.endswith(".py") and Path(model).is_file():
        load_object(f"{model}:")  # raises UserError, which lists the objects of the file
    spec = parse_name(model, given, data)
    if spec.provider not in BUILT_IN and spec.provider not in list_providers():
        raise _unknown_model(spec, configured)
    return _with_options(spec, load_provider(spec.provider), usual, preset, called)


def _parse_python(
    model: str, given: Mapping[str, Any], data: str, usual: Mapping[str, Any], preset: str, called: str
) -> ModelSpec:
    """Parse `file.py:NAME`, the user's own object, or `file.py:PROVIDER/MODEL@URL`, the user's own provider."""
    file, _, rest = model.partition(".py:")
    name, _, model_name = rest.partition("/")
    target = f"{file}.py:{name}" if model_name else model
    user_object = load_object(target)
    if not isinstance(user_object, Provider):
        return ModelSpec(model, options=_merge_preset(preset, given, user_object, model), user_object=user_object)
    model_name, url = split_address(model_name)
    spec = ModelSpec(model, f"{file}.py:{name}", model_name, url, given, data)
    return _with_options(spec, user_object, usual, preset, called)


def _merge_preset(preset: str, given: Mapping[str, Any], user_object: Any, called: str) -> Mapping[str, Any]:
    """Return a preset's options for a user's object, merged with those that are given, which win."""
    from weft.models.declaration import check_preset
    from weft.models.presets import find_preset

    if not preset:
        return given
    settings = find_preset(preset).settings
    check_preset(user_object, preset, settings, called)
    return {**settings, **given}


def _unknown_model(spec: ModelSpec, configured: Mapping[str, Any]) -> UserError:
    for file, provider in (("config.json", "hf"), ("model_index.json", "diffusers")):
        if (Path(spec.source_text) / file).is_file():
            return UserError(f"{spec.text} is a folder of weights: write {provider}/{spec.text}")
    providers = list_providers()
    names = ", ".join(sorted([*providers, *configured, REFERENCE]))
    suggestion = suggest_name(spec.source_text, [*configured, *providers])
    return UserError(f"unknown model {spec.text!r}; {suggestion}known: {names}; or file.py:NAME for your own")


def _with_options(spec: ModelSpec, factory: Provider, usual: Mapping[str, Any], preset: str, called: str) -> ModelSpec:
    """Return the spec with its provider, and its options merged with those of the preset and the `usual` ones.

    The options `name` and `version` become the model's own identity, unless the provider declares them itself.
    """
    from weft.models.presets import apply_preset

    options = dict(spec.options)
    identity = {
        name: options.pop(name) for name in ("name", "version") if name in options and name not in factory.options
    }
    if "name" in identity and "version" not in identity:
        raise UserError(f"{spec.text}: a name is for caching answers, together with a version: --model-opt version=...")
    has_empty_url = "," in spec.url and not all(url.strip() for url in spec.url.split(","))
    if has_empty_url and not factory.handles_several_addresses:
        raise UserError(
            f"{spec.text}: there is no address behind a comma; write NAME@http://HOST:PORT/v1,http://HOST:PORT/v1"
        )
    if preset:
        options = apply_preset(preset, factory.options, options, spec.text)
    defaults = {name: value for name, value in usual.items() if name in factory.options}
    version = str(identity["version"]) if "version" in identity else None
    return replace(
        spec,
        options={**defaults, **options},
        name=str(identity.get("name", called)),
        version=version,
        factory=factory,
    )


# endpoints


class ResolvedModel(Struct, frozen=True):
    """A model ready to be called: its endpoints by role, and their composition if there is one."""

    name: str
    endpoints: Mapping[str, Endpoint]  # by role; the only role is `model` if there is no composition
    composition: "type[Composition] | None" = None
    version: str = ""  # of the composition
    version_note: str = ""  # what the user must know about that version


def resolve_model(
    model: Any,
    blobs: Blobs,
    given: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    data: str = "",
    outputs: Callable[[Path, Blobs], Endpoint] | None = None,
    preset: str = "",
) -> ResolvedModel:
    """Parse and build a model. `outputs` reads `folder/DIR` in the layout of the benchmark's own outputs."""
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
    """Parse and build a model of one endpoint.

    `data` is the dataset's folder, for judges that know its reference answers. `usual` are default options for
    providers that have them; the options of a `preset` override these.
    """
    return _build_endpoint(_parse_single(model, given or {}, config or {}, data, usual or {}, preset), blobs)


def build_model(spec: ModelSpec, blobs: Blobs) -> ResolvedModel:
    """Build the endpoints of a spec. Nothing is loaded or called yet."""
    from weft.models.versions import identify_composition

    if spec.composition is not None:
        endpoints = {role: _build_endpoint(role_spec, blobs) for role, role_spec in spec.role_specs.items()}
        return ResolvedModel(
            spec.text, endpoints, spec.composition, *identify_composition(spec.composition, blobs.root.parent)
        )
    endpoint = _build_endpoint(spec, blobs)
    return ResolvedModel(endpoint.name, {"model": endpoint})


def _build_endpoint(spec: ModelSpec, blobs: Blobs) -> Endpoint:
    """Build the user's object, or a provider's model at one address or several."""
    from weft.models.function import endpoint_from_object
    from weft.models.load_balancer import LoadBalancer

    factory = spec.factory
    if factory is None:
        return endpoint_from_object(spec.user_object, blobs, spec.options, source=spec.source_text)
    urls = [url.strip() for url in spec.url.split(",")]
    if len(urls) == 1 or factory.handles_several_addresses:
        return _build_at_address(replace(spec, url=spec.url.strip()), factory, blobs)
    endpoints: list[Endpoint] = []
    for url in urls:
        single = replace(spec, url=url, source_text=f"{spec.provider}/{spec.model}@{url}")
        endpoints.append(_build_at_address(single, factory, blobs))
    if any(isinstance(endpoint, TaskEndpoint) for endpoint in endpoints):
        raise UserError(f"{spec.text}: a task must be collected at the address it was submitted to: give one address")
    return LoadBalancer(endpoints)


def _build_at_address(spec: ModelSpec, factory: Provider, blobs: Blobs) -> Endpoint:
    try:
        endpoint: Any = factory.make(spec, blobs, **spec.convert_options(factory.options))
    except (WeftError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise wrap_error(f"{spec.text}: the provider {spec.provider}", error) from error
    if not isinstance(endpoint, Endpoint):
        raise UserError(f"{spec.text}: the provider {spec.provider} made {type(endpoint).__name__}, and no Endpoint")
    if spec.version is None:
        endpoint.normalise_addresses()
    else:
        endpoint.identify_as(spec.name, spec.version)
    return endpoint
