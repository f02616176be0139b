"""A digest of everything in a user's Python object that can change its answers, and the names of what cannot be seen.

The object is followed through its code, its closure, its default arguments, its attributes, its class, and the globals
that its code names. Plain values, collections, arrays, images, tensors and files of weights count by their content;
code counts by its source. A database connection, a socket or a client of a server has a state that no digest covers:
such values are opaque, and are named.

    digest_object(functools.partial(answer, net))   # ObjectDigest(digest="9f0c...", opaque=("client (Client)",))

Two objects with the same digest and nothing opaque give the same answers, as far as their own code decides them.
Installed code counts by the file that it is in.
"""

import builtins
import contextlib
import copyreg
import enum
import functools
import gc
import hashlib
import inspect
import logging
import re
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, cast

from msgspec import Struct

from weft.models.code_digest import (
    attribute_names_in,
    global_names_in,
    import_modules_in,
    installed_source,
    is_installed,
    is_installed_class,
    is_installed_code,
    module_file,
    module_source,
    names_in,
    read_environment,
    source_of,
)
from weft.models.library_values import LibraryValue, Unseen, describe_value
from weft.models.named_weights import NamedWeights
from weft.models.object_state import has_hidden_state, state_of
from weft.store.blobs import Blobs

PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
SEQUENCES = (list, tuple, deque, set, frozenset, dict)
MAX_VALUES = 200_000  # that are followed; a larger object is opaque
MAX_DECIMAL_BITS = 4096  # Python refuses to write much longer integers as decimals
# Names of functions that read files, settings or servers when they are called.
READERS = frozenset(
    {"open", "load", "load_file", "from_pretrained", "from_single_file", "read_bytes", "read_text", "memmap"}
    | {"safe_load", "loadtxt", "genfromtxt", "fromfile", "imread", "read_csv", "read_json", "read_parquet"}
    | {"environ", "getenv", "urlopen", "request", "post", "create", "import_module", "hf_hub_download"}
    | {"requests", "httpx", "subprocess", "socket", "connect", "popen", "globals", "eval", "exec", "__import__"}
    | {"parse_args", "stdin", "input"}
)
# What has a state, but none that changes an answer.
IGNORED_TYPES: tuple[type, ...] = (
    type(threading.Lock()),
    type(threading.RLock()),
    threading.Event,
    threading.Condition,
    threading.Semaphore,
    logging.Logger,
    Blobs,  # where images are stored, not what they show
)
CLASS_STATEMENT_NAMES = frozenset({"__module__", "__qualname__", "__doc__", "__firstlineno__"})  # of every class
DESCRIPTORS = (
    MethodDescriptorType,
    WrapperDescriptorType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
LruCache = type(functools.lru_cache(len))


class ObjectDigest(Struct, frozen=True):
    """What is known about a user's object."""

    digest: str
    opaque: tuple[str, ...] = ()  # what it uses and the digest does not cover, each with its type
    readers: tuple[str, ...] = ()  # functions it calls that may read what the digest does not cover, such as `open`
    opaque_values: tuple[Any, ...] = ()  # what `opaque` names


def digest_object(thing: Any, memory: Path | None = None, inputs: Mapping[str, Any] | None = None) -> ObjectDigest:
    """Return the digest of a function, class or object. `inputs` are values that it will be given, such as options.

    `memory` is a file that stores digests of files of weights, so that large ones are read once.
    """
    walk = _Walk(memory)
    try:
        text = walk.visit(thing, "")
        if inputs:
            text = walk.combine("inputs", text, walk.visit(dict(sorted(inputs.items())), "options"))
    except RecursionError:
        return ObjectDigest("", (f"{type(thing).__name__}, which is nested too deeply",), (), (thing,))
    return ObjectDigest(text, tuple(walk.opaque), tuple(walk.readers), tuple(walk.opaque_values))


class _Walk:
    """Follows one object. Every value is visited once."""

    def __init__(self, memory: Path | None) -> None:
        self.opaque: dict[str, None] = {}
        self.opaque_values: list[Any] = []
        self.readers: dict[str, None] = {}
        self._digests: dict[tuple[int, bool], str] = {}  # by id; a value that is being visited has its number
        self._kept: list[Any] = []  # so that an id stays the same value's
        self._weights = NamedWeights(memory)
        self._optional = False  # whether what is opaque is left out
        self._owner: Any = None  # the lasting object whose content, made for this walk, is being followed
        self._path: list[tuple[str, Any]] = []  # the values that are being visited, with the way to each

    def combine(self, kind: str, *parts: str) -> str:
        digest = hashlib.sha256(kind.encode())
        for part in parts:
            digest.update(b"\x00" + part.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:32]

    def visit(self, value: Any, name: str) -> str:
        """Return the digest of a value; `name` is the way to it, for people."""
        if type(value) in PLAIN_TYPES:
            return self._plain(value)
        key = (id(value), self._optional)
        if key in self._digests:
            return self._digests[key]
        if len(self._kept) > MAX_VALUES:
            return self._unseen(value, name)
        self._digests[key] = f"visited {len(self._kept)}"
        self._kept.append(value)
        self._path.append((name, value))
        try:
            digest = self._follow(value, name)
        except Unseen:
            digest = self._unseen(value, name)
        self._path.pop()
        self._digests[key] = digest
        return digest

    def _unseen(self, value: Any, name: str) -> str:
        if not self._optional:
            self.opaque[self._describe(value, name)] = None
            self.opaque_values.append(value if self._owner is None else self._owner)
        return self.combine("opaque", _type_name(cast(Any, type(value))))

    def _describe(self, value: Any, name: str) -> str:
        """Return what the user knows a value by: the first object on the way to it that is not of the user's own."""
        for outer_name, outer in self._path:
            if outer_name and _is_library_object(outer):
                name, value = outer_name, outer
                break
        if not name:
            return type(value).__name__
        return f"{_attribute_path(name)} ({type(value).__name__})"

    def _plain(self, value: Any) -> str:
        file = ""
        if isinstance(value, str):
            file = self._weights.digest(value)
        if isinstance(value, bytes):
            return self.combine("bytes", hashlib.sha256(value).hexdigest())
        if isinstance(value, int) and value.bit_length() > MAX_DECIMAL_BITS:
            return self.combine("int", hex(value))
        return self.combine(type(value).__name__, repr(value), file)

    def _follow(self, value: Any, name: str) -> str:
        """Return the digest of a value by its kind. Raises _Unseen for what cannot be seen."""
        if isinstance(value, ModuleType):
            return self._whole_module(value, name)
        if isinstance(value, FunctionType):
            return self._function(value, name)
        if isinstance(value, MethodType):
            return self.combine("method", self.visit(value.__func__, name), self.visit(value.__self__, name or "self"))
        if isinstance(value, functools.partial):
            return self._partial(cast(Any, value), name)
        if isinstance(value, (staticmethod, classmethod)):
            return self.combine("static", self.visit(cast(Any, value).__func__, name))
        if isinstance(value, (property, functools.cached_property)):
            return self._property(cast(Any, value), name)
        if inspect.isclass(value):
            return self._class(value, name)
        if isinstance(value, (BuiltinFunctionType, MethodWrapperType)):
            return self._builtin(value, name)
        if isinstance(value, CellType):
            return self._cell(value, name)
        if isinstance(value, LruCache):
            return self.combine("cached", self.visit(cast(Any, value).__wrapped__, name), *self._cached_results(value))
        if isinstance(value, DESCRIPTORS):
            return self.combine("descriptor", str(value.__qualname__))
        return self._instance(value, name)

    # code

    def _module(self, module: ModuleType) -> str:
        if is_installed(module.__name__, module_file(module)):
            return self.combine("module", module.__name__)
        return self.combine("module", module.__name__, module_source(module))

    def _whole_module(self, module: ModuleType, name: str) -> str:
        """Return the digest of a module that is an attribute or an argument: nobody can say what is taken from it."""
        digest = self._module(module)
        if is_installed(module.__name__, module_file(module)):
            return digest
        public = {key: value for key, value in vars(module).items() if not key.startswith("__")}
        return self.combine("whole module", digest, self._attributes(public, name))

    def _cached_results(self, cached: Any) -> Iterator[str]:
        """Yield digests of what an lru_cache holds and somebody may have changed since, such as a net."""
        results: list[Any] = []
        for value in gc.get_referents(cached):
            results += cast("dict[Any, Any]", value).values() if isinstance(value, dict) else [value]
        # the links of its list are named with their results
        ignored = (*PLAIN_TYPES, type, FunctionType)
        changeable = [result for result in results if not isinstance(result, ignored) and not _is_link(result)]
        yield from sorted(self.visit(result, "cached") for result in changeable)

    def _function(self, function: FunctionType, name: str) -> str:
        code = function.__code__
        parts = [str(function.__module__), function.__qualname__]
        installed = is_installed(str(function.__module__), code.co_filename)
        if installed:
            parts.append(installed_source(str(function.__module__)))
        else:
            parts += [source_of(function), self.visit((function.__defaults__, function.__kwdefaults__), name)]
            parts += [function.__name__, self._description(function)]
        for free_name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            parts += [free_name, *self._free_variable(cell, free_name, code)]
        if vars(function):
            parts.append(self._attributes(vars(function), ""))
        if not installed:
            parts += self._used_globals(function)
            parts += self._files_in(code)
            parts += read_environment(code)
            if not self._optional:
                self.readers.update(dict.fromkeys(sorted(names_in(code) & READERS)))
        return self.combine("function", *parts)

    def _free_variable(self, cell: CellType, name: str, code: CodeType) -> Iterator[str]:
        try:
            content: Any = cell.cell_contents
        except ValueError:
            return
        if isinstance(content, ModuleType):
            yield self._module(content)
            yield from self._used_attributes(content, attribute_names_in(code), [])
        else:
            yield self.visit(content, name)

    def _cell(self, cell: CellType, name: str) -> str:
        try:
            content: Any = cell.cell_contents
        except ValueError:
            return "empty"
        return self.visit(content, name)

    def _used_globals(self, function: FunctionType) -> Iterator[str]:
        """Yield the digests of the globals that a function's code names, and of what it takes from modules."""
        names = attribute_names_in(function.__code__)
        known = {**vars(builtins), **function.__globals__}
        for name in sorted(global_names_in(function.__code__) & known.keys()):
            value = known[name]
            if isinstance(value, ModuleType):
                yield from (name, self._module(value))
                yield from self._used_attributes(value, names, [])
            else:
                yield from (name, self.visit(value, name))
        try:
            modules = import_modules_in(function)
        except Exception as error:
            message = f"what {function.__qualname__} imports ({type(error).__name__}: {error})"
            self.opaque[message] = None
            self.opaque_values.append(function)
            return
        for module in modules:
            yield self._module(module)
            yield from self._used_attributes(module, names, [])

    def _used_attributes(self, module: ModuleType, names: Iterable[str], seen: list[ModuleType]) -> Iterator[str]:
        """Yield the digests of what code that uses these names takes from a module and the modules in it.

        Of an installed module that is code by the file it is in, and what the user may have put there: plain values
        and code of his own.
        """
        if any(module is other for other in seen):
            return
        seen.append(module)
        installed = is_installed(module.__name__, module_file(module))
        for name in sorted(vars(module).keys() & set(names)):
            value = vars(module)[name]
            if isinstance(value, ModuleType):
                yield from (name, self._module(value))
                yield from self._used_attributes(value, names, seen)
            elif value is sys.modules:
                for module in [sys.modules[key] for key in sorted(sys.modules.keys() & set(names))]:
                    yield self._module(module)
                    yield from self._used_attributes(module, names, seen)
            elif not installed or type(value) in PLAIN_TYPES or value is sys.argv:
                yield from (name, self.visit(value, name))
            elif isinstance(value, (FunctionType, type)):
                own = not is_installed_code(value)
                yield from (name, self.visit(value, name) if own else installed_source(str(value.__module__)))

    def _files_in(self, code: CodeType) -> Iterator[str]:
        """Yield the digests of files of weights that the code names."""
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from self._files_in(constant)
            elif isinstance(constant, str):
                yield self._weights.digest(constant)

    def _partial(self, partial: "functools.partial[Any]", name: str) -> str:
        arguments = (partial.args, partial.keywords, vars(partial))
        return self.combine("partial", self.visit(partial.func, name), self.visit(arguments, name))

    def _property(self, value: Any, name: str) -> str:
        if isinstance(value, property):
            return self.combine("property", self.visit((value.fget, value.fset, value.fdel), name))
        return self.combine("cached_property", self.visit(value.func, name))

    def _class(self, kind: type, name: str) -> str:
        where = (str(kind.__module__), kind.__qualname__)
        if is_installed_class(kind):
            return self.combine("class", *where, installed_source(kind.__module__))
        parts = [*where, kind.__name__, source_of(kind), self._description(kind)]
        parts += [self.visit(base, name) for base in (*kind.__bases__, type(kind))]
        for key, value in sorted(vars(kind).items()):
            if isinstance(value, DESCRIPTORS) or key == "_abc_impl":
                continue
            if key in CLASS_STATEMENT_NAMES:
                continue
            is_data = not (callable(value) or hasattr(value, "__get__"))
            if key.startswith("__") and is_data and type(value) not in PLAIN_TYPES:
                continue  # what the class statement, or a metaclass, adds to what the source says
            parts += [key, self.visit(value, f"{kind.__name__}.{key}")]
        return self.combine("class", *parts)

    def _description(self, item: FunctionType | type) -> str:
        """Return the digest of a docstring and of annotations: some libraries make prompts and schemas of them.

        Annotations in a file are a part of its source.
        """
        annotations: Any = None
        if not module_source(sys.modules.get(str(item.__module__))):
            with contextlib.suppress(Exception):  # those that are evaluated late may name what is not there
                annotations = inspect.get_annotations(item)
        was_optional, self._optional = self._optional, True
        digest = self.visit(item.__doc__, "") + self.visit(annotations, "")
        self._optional = was_optional
        return digest

    def _builtin(self, function: BuiltinFunctionType | MethodWrapperType, name: str) -> str:
        owner: Any = function.__self__
        parts = [function.__qualname__]
        if owner is not None and not isinstance(owner, ModuleType):
            parts.append(self.visit(owner, name))
        return self.combine("builtin", *parts)

    # data

    def _instance(self, value: Any, name: str) -> str:
        kind: type[Any] = cast(Any, type(value))
        if kind in IGNORED_TYPES:
            return self.combine("ignored", kind.__name__)
        if isinstance(value, enum.Enum):
            return self.combine("enum", self.visit(kind, name), value.name, self._attributes(vars(value), name))
        if isinstance(value, PurePath):
            return self.combine("path", str(value), self._weights.digest(str(value)))
        if isinstance(value, MappingProxyType):
            return self.combine("proxy", self._owned(value, dict(cast("Mapping[Any, Any]", value)), name))
        content = describe_value(value)
        if content is not None:
            return self._library_value(value, content, name)
        class_digest = self.visit(kind, name)
        if isinstance(value, (*SEQUENCES, *PLAIN_TYPES)):
            base = self._collection(value, name)
            return self.combine("subclass", class_digest, base, self._attributes(state_of(value), name))
        if not has_hidden_state(kind):
            return self.combine("object", class_digest, self._attributes(state_of(value), name))
        if not is_installed_class(kind):
            raise Unseen
        return self.combine("reduced", class_digest, self._reduced(value, name))

    def _library_value(self, value: Any, content: LibraryValue, name: str) -> str:
        followed = self._owned(value, dict(content.followed), name)
        was_optional, self._optional = self._optional, True
        optional = self._owned(value, dict(content.optional), name)
        self._optional = was_optional
        return self.combine(content.kind, *content.facts, followed, optional)

    def _owned(self, owner: Any, content: Any, name: str) -> str:
        """Return the digest of the content of a value, which was put together for this walk alone."""
        if self._owner is not None:
            return self.visit(content, name)
        self._owner = owner
        digest = self.visit(content, name)
        self._owner = None
        return digest

    def _attributes(self, attributes: Mapping[str, Any], name: str) -> str:
        parts: list[str] = []
        for key in sorted(attributes, key=str):
            parts += [str(key), self.visit(attributes[key], f"{name}.{key}" if name else str(key))]
        return self.combine("attributes", *parts)

    def _collection(self, value: Any, name: str) -> str:
        """Return the digest of the content of a built-in collection, or of a plain value of a subclass."""
        if isinstance(value, dict):
            pairs: list[str] = []
            # a list, for what is followed may import a module, and so change a dict such as sys.modules
            for key, item in list(dict[Any, Any].items(cast("dict[Any, Any]", value))):
                pairs.append(self.visit(key, name) + self.visit(item, _item_name(name, key)))
            return self.combine("dict", *pairs)
        if isinstance(value, SEQUENCES):
            kind = _builtin_base(value, SEQUENCES)
            members = [
                self.visit(item, name) for item in list(kind.__iter__(value))
            ]  # whatever the class shows of itself
            if kind in (set, frozenset):
                return self.combine("set", *sorted(members))
            length = cast("deque[Any]", value).maxlen if isinstance(value, deque) else None
            return self.combine("list", str(length), *members)
        plain = _builtin_base(value, PLAIN_TYPES)
        # of the built-in type, whatever the class says of itself
        file = self._weights.digest(str.__str__(value)) if isinstance(value, str) else ""
        return self.combine("plain", plain.__repr__(value), file)

    def _reduced(self, value: Any, name: str) -> str:
        """Return the digest of what pickle would store of a value of an installed type. Raises Unseen if it cannot."""
        registered = copyreg.dispatch_table.get(cast("type[Any]", type(value)))
        try:
            reduced: Any = registered(value) if registered else value.__reduce_ex__(4)
        except Exception:
            raise Unseen from None
        if isinstance(reduced, str):
            return self.combine("global", reduced)
        function, arguments, *rest = cast("Sequence[Any]", reduced)
        parts: list[Any] = [function, arguments]
        if rest and rest[0] is not None:
            parts.append(rest[0])
        parts += [list(items) for items in rest[1:3] if items is not None]
        return self.combine("reduced", self._owned(value, parts, name))


def _builtin_base(value: Any, kinds: tuple[type, ...]) -> Any:
    return next(kind for kind in kinds if isinstance(value, kind))


def _is_link(value: Any) -> bool:
    return type(value).__name__ == "_lru_list_elem"


def _item_name(name: str, key: Any) -> str:
    if isinstance(key, (str, int)):
        return f"{name}[{key!r}]"
    return name


def _is_library_object(value: Any) -> bool:
    """Return whether a value is an instance of an installed class, and neither code nor a collection."""
    code = (ModuleType, FunctionType, MethodType, CellType, functools.partial, staticmethod, classmethod, property)
    if inspect.isclass(value) or isinstance(value, (*code, *SEQUENCES, LruCache)):
        return False
    return is_installed_class(cast(Any, type(value)))


def _attribute_path(name: str) -> str:
    """Return the way to a value as a user would write it: `client.pool` for `self['client'].pool`."""
    path = re.sub(r"\['(\w+)'\]", r".\1", name).removeprefix(".")
    return path.removeprefix("self.")


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
