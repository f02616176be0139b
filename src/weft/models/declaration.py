"""What a user's own function, class or object declares by its attributes and parameters, and the options for it.

An option of the user is weft's (`DECLARED_OPTIONS`), or a parameter of the class, or a parameter of the call; anything
else is an error. Values that came as text are converted by a parameter's annotation, or by its default.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.errors import UserError
from weft.models.converters import boolean
from weft.types import Request

UserFunction = Callable[..., Any]
TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "Path": Path, "str": str}
TYPE_ADVICE: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
CALL_PARAMETERS = ("self", "messages", "want", "question", "size", "draw", "blobs")  # weft passes these itself
DECLARED_OPTIONS = (
    "name",
    "version",
    "concurrency",
    "timeout",
    "batch_size",
    "images",
    "own_images",
    "max_side",
    "max_images",
    "drawing",
)


class Declaration(Struct, frozen=True):
    """What a user's object declares by its attributes, all of which are optional."""

    called: str  # its own name, or that of its class
    options: Mapping[str, Any]  # those of DECLARED_OPTIONS that it has
    batch: Callable[..., Any] | None  # its method for many calls at once
    close: Callable[[], Any] | None
    roles: tuple[str, ...] | None  # of a class that is a composition
    sends: bool  # whether it has `send`, as endpoints have


class UserOptions(Struct, frozen=True):
    """The user's options that are not weft's own."""

    init: dict[str, Any]  # arguments of the class
    call: dict[str, Any]  # arguments of each call
    seed: int | None = None  # the seed of the first draw


def read_declaration(thing: Any) -> Declaration:
    """Read the attributes of a user's object. No other code looks at them.

    Raises UserError if its own `__getattr__` does.
    """
    options: dict[str, Any] = {}
    for name in DECLARED_OPTIONS:
        value = _attribute(thing, name)
        if value is not None:
            options[name] = value
    roles = _attribute(thing, "roles")
    if not inspect.isclass(thing) or not isinstance(roles, tuple):
        roles = None
    return Declaration(
        called=_attribute(thing, "__name__") or type(thing).__name__,
        options=options,
        batch=_method(thing, "batch"),
        close=_method(thing, "close"),
        roles=cast("tuple[str, ...] | None", roles),
        sends=_attribute(thing, "send") is not None,
    )


def _attribute(thing: Any, name: str) -> Any:
    """Return an attribute, None where there is none."""
    try:
        return getattr(thing, name, None)
    except Exception as error:
        raise UserError(
            f"{type(thing).__name__}: its attribute {name!r} raised {type(error).__name__} ({error}); "
            "`__getattr__` must raise AttributeError for what is not there"
        ) from error


def _method(thing: Any, name: str) -> Callable[..., Any] | None:
    method = _attribute(thing, name)
    if callable(method):
        return method
    return None


def sort_options(thing: Any, declaration: Declaration, options: Mapping[str, Any], called: str) -> UserOptions:
    """Sort the user's options by who takes them. Raises UserError for one that nobody takes."""
    init_parameters = _init_parameters(thing)
    call_parameters = _parameters_of(_call_method(thing))
    takes_any = declaration.batch is not None  # a batch method gets all options with each request
    init: dict[str, Any] = {}
    call: dict[str, Any] = {}
    seed: int | None = None
    for name, value in options.items():
        if name in DECLARED_OPTIONS:
            continue
        if name in init_parameters:
            init[name] = _convert(init_parameters[name], value, called)
        elif name == "seed" and (name in call_parameters or takes_any):
            parameter = inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY, annotation=int)
            seed = _convert(parameter, value, called)
        elif name in call_parameters:
            call[name] = _convert(call_parameters[name], value, called)
        elif takes_any:
            call[name] = value
        else:
            names = ", ".join(dict.fromkeys((*init_parameters, *call_parameters))) or "none"
            raise UserError(
                f"{called}: unknown option {name!r}; its own parameters are {names}; "
                f"weft knows {', '.join(DECLARED_OPTIONS)}"
            )
    return UserOptions(init, call, seed)


def check_preset(thing: Any, preset: str, names: Iterable[str], called: str) -> None:
    """Raise UserError if a preset sets options that a user's object has no parameter for; it names all of them."""
    declaration = read_declaration(thing)
    if declaration.batch is not None:
        return
    own = dict.fromkeys((*_init_parameters(thing), *_parameters_of(_call_method(thing))))
    missing = [name for name in names if name not in own and name not in DECLARED_OPTIONS]
    if missing:
        raise UserError(
            f"{called or declaration.called} lacks parameters that the preset {preset} sets: {', '.join(missing)}; its "
            f"own are {', '.join(own) or 'none'}. Add them, as in def model(messages, want, {missing[0]}=None)"
        )


def _init_parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters that a class is created with; none for what is no class."""
    if not inspect.isclass(thing):
        return {}
    return _parameters_of(cast(Any, thing).__init__, ("self", "blobs"))


def _call_method(thing: Any) -> Any:
    if not inspect.isclass(thing):
        return thing
    for base in thing.__mro__:
        if "__call__" in vars(base):
            return vars(base)["__call__"]
    return None


def _parameters_of(function: Any, excluded: tuple[str, ...] = CALL_PARAMETERS) -> dict[str, inspect.Parameter]:
    """Return the named parameters that a user may set."""
    try:
        parameters = inspect.signature(function, eval_str=False).parameters
    except (TypeError, ValueError):
        return {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: parameter for name, parameter in parameters.items() if parameter.kind in by_name and name not in excluded
    }


def _convert(parameter: inspect.Parameter, value: Any, called: str) -> Any:
    """Convert a text to the parameter's type; other values stay as they are."""
    if not isinstance(value, str):
        return value
    annotation = parameter.annotation
    if isinstance(annotation, type):
        annotation = annotation.__name__
    target: type[Any] = cast(Any, type(parameter.default))
    if isinstance(annotation, str):
        target = TYPES.get(annotation) or target
    try:
        if target is bool:
            return boolean(value)
        if target in (int, float, Path):
            return target(value)
        return value
    except ValueError:
        advice = TYPE_ADVICE.get(target, "another value")
        raise UserError(f"{called}: option {parameter.name}={value!r}: give {advice}") from None


def call_arguments(
    function: UserFunction, request: Request, options: Mapping[str, Any], seed: int
) -> tuple[list[Any], dict[str, Any]]:
    """Return what a function is called with besides messages and modality, by position and by name.

    It gets what it has a parameter for: the `question` of a judge (with metrics, schema and material), the `size` of
    the image, the number of the `draw`, the `seed` of this draw, and the user's options. `size` is left out if nobody
    chose one and the parameter has a default.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [], {}
    values: dict[str, Any] = {
        "question": request.question,
        "size": request.size,
        "draw": request.draw,
        "seed": seed + request.draw,
    }
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in values.items():
        if name not in parameters:
            continue
        parameter = parameters[name]
        if name == "size" and value is None and parameter.default is not inspect.Parameter.empty:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[name] = value
    named |= {name: value for name, value in options.items() if name in parameters}
    return positional, named
