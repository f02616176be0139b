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
import hashlib
import inspect
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, cast

from msgspec import Struct

from weft.models.code_digest import (
    ATTRIBUTE_LOOK_UPS,
    attribute_names_in,
    global_names_in,
    import_modules_in,
    installed_source,
    is_installed,
    is_installed_class,
    module_file,
    module_source,
    names_in,
    read_environment,
    source_of,
    texts_in,
)
from weft.models.library_values import LibraryValue, Unseen, describe_value
from weft.models.named_weights import NamedWeights
from weft.models.object_kinds import (
    ADDED_NAMES,
    CLASS_STATEMENT_NAMES,
    DESCRIPTORS,
    IGNORED_TYPES,
    PLAIN_TYPES,
    SEQUENCES,
    LruCache,
    builtin_base,
    describe_place,
    is_disguised,
    is_followed,
    is_users_own,
    item_name,
    type_name,
)
from weft.models.object_state import has_hidden_state, is_named, results_of, state_of, without_hashes
from weft.models.patched_code import patches_in_class, patches_in_module
from weft.models.read_files import READER_FUNCTIONS, named_file, readers_in

MAX_VALUES = 200_000  # that are followed; a larger object is opaque
MAX_DECIMAL_BITS = 4096  # Python refuses to write much longer integers as decimals


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


def digest_roughly(thing: Any) -> str:
    """Return a digest that tells most objects apart and reads no weights, for a remark on an object whose version the
    user sets."""
    try:
        return _Walk(None, sampled=True).visit(thing, "")
    except RecursionError:
        return ""


class _Walk:
    """Follows one object. Every value is visited once."""

    def __init__(self, memory: Path | None, *, sampled: bool = False) -> None:
        self.opaque: dict[str, None] = {}
        self.opaque_values: list[Any] = []
        self.readers: dict[str, None] = {}
        self._digests: dict[tuple[int, bool], str] = {}  # by id; a value that is being visited has its number
        self._kept: list[Any] = []  # so that an id stays the same value's
        self._patched: set[tuple[int, bool]] = set()  # installed places that were searched for the user's own
        self._weights = NamedWeights(memory, sampled=sampled)
        self._sampled = sampled  # whether large values count by a few of their numbers
        self._optional = False  # whether what is opaque is left out
        self._in_library = False  # whether that is so because a library's object holds it
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
        if self._in_library and not is_disguised(value) and is_users_own(value):
            self._optional = self._in_library = False  # the user's own counts wherever a library holds it
            digest = self.visit(value, name)
            self._optional = self._in_library = True
            return digest
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
            self.opaque[describe_place(self._path, value, name)] = None
            self.opaque_values.append(value if self._owner is None else self._owner)
        return self.combine("opaque", type_name(cast(Any, type(value))))

    def _plain(self, value: Any) -> str:
        file = ""
        if isinstance(value, str):
            file = self._weights.digest(value)
            self._note_named_file(value, file)
        if isinstance(value, bytes):
            return self.combine("bytes", hashlib.sha256(value).hexdigest())
        if isinstance(value, int) and value.bit_length() > MAX_DECIMAL_BITS:
            return self.combine("int", hex(value))
        return self.combine(type(value).__name__, repr(value), file)

    def _note_named_file(self, text: str, weights: str) -> None:
        if not weights and not self._optional and named_file(text):
            self.readers[text] = None

    def _follow(self, value: Any, name: str) -> str:
        """Return the digest of a value by its kind. Raises _Unseen for what cannot be seen."""
        if is_disguised(value):
            return self._disguised(value, name)
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
            return self.combine("module", module.__name__, *self._patches_of(module))
        return self.combine("module", module.__name__, module_source(module))

    def _patches_of(self, place: ModuleType | type) -> Iterator[str]:
        """Yield what the user has put into an installed module or class. Each place is looked at once in each way."""
        if (id(place), self._optional) not in self._patched:
            self._patched.add((id(place), self._optional))
            patches = patches_in_class(place) if isinstance(place, type) else patches_in_module(place)
            for name, value in sorted(patches.items()):
                yield from (name, self.visit(value, name))

    def _patches_around(self, item: FunctionType | type) -> Iterator[str]:
        """Yield what the user has put into an installed function's module, or into a class and its module."""
        if isinstance(item, type):
            yield from self._patches_of(item)
        module = sys.modules.get(str(item.__module__))
        if isinstance(module, ModuleType):
            yield from self._patches_of(module)

    def _whole_module(self, module: ModuleType, name: str) -> str:
        """Return the digest of a module that is an attribute or an argument: nobody can say what is taken from it."""
        digest = self._module(module)
        if is_installed(module.__name__, module_file(module)):
            return digest
        public = {key: value for key, value in vars(module).items() if not key.startswith("__")}
        return self.combine("whole module", digest, self._attributes(public, name))

    def _cached_results(self, cached: Any) -> Iterator[str]:
        """Yield digests of what an lru_cache holds and somebody may have changed since, such as a net."""
        results = [
            result for result in results_of(cached) if not isinstance(result, (*PLAIN_TYPES, type, FunctionType))
        ]
        yield from sorted(self.visit(result, "cached") for result in results)

    def _function(self, function: FunctionType, name: str) -> str:
        code = function.__code__
        parts = [str(function.__module__), function.__qualname__]
        installed = is_installed(str(function.__module__), code.co_filename)
        if installed:
            parts += [installed_source(str(function.__module__)), *self._patches_around(function)]
        else:
            parts += [source_of(function), self.visit((function.__defaults__, function.__kwdefaults__), name)]
            parts += [function.__name__, self._description(function)]
        for free_name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            parts += [free_name, *self._free_variable(cell, free_name, code)]
        if vars(function):
            parts.append(self._attributes(vars(function), ""))
        if not installed:
            parts += self._used_globals(function)
            parts += [self._plain(text) for text in texts_in(code)]
            parts += read_environment(code)
            if not self._optional:
                self.readers.update(dict.fromkeys(readers_in(code)))
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
        if {"modules", "__name__"} <= names_in(function.__code__):
            own_module = sys.modules.get(str(function.__globals__.get("__name__")))
            if own_module is not None:
                yield from self._used_attributes(own_module, names, [])
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
        if not installed:
            yield from self._computed_attributes(module, names)
        for name in sorted(vars(module).keys() & set(names)):
            value = vars(module)[name]
            if isinstance(value, ModuleType):
                yield from (name, self._module(value))
                yield from self._used_attributes(value, names, seen)
            elif value is sys.modules:
                for module in [sys.modules[key] for key in sorted(sys.modules.keys() & set(names))]:
                    yield self._module(module)
                    yield from self._used_attributes(module, names, seen)
            elif not installed or type(value) in PLAIN_TYPES or value is sys.argv or is_followed(value):
                yield from (name, self.visit(value, name))

    def _computed_attributes(self, module: ModuleType, names: Iterable[str]) -> Iterator[str]:
        """Yield the digests of what code may take from a user's module without its name in the code."""
        if "__getattr__" in vars(module):
            yield self.visit(vars(module)["__getattr__"], f"{module.__name__}.__getattr__")
        if not ATTRIBUTE_LOOK_UPS.isdisjoint(names) and module.__name__ != "__main__":
            public = {key: value for key, value in vars(module).items() if not key.startswith("__")}
            yield self._optionally(public)

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
            return self.combine("class", *where, installed_source(kind.__module__), *self._patches_around(kind))
        parts = [*where, kind.__name__, source_of(kind), self._description(kind)]
        parts += [self.visit(base, name) for base in (*kind.__bases__, type(kind))]
        for key, value in sorted(vars(kind).items()):
            if isinstance(value, DESCRIPTORS) or key == "_abc_impl":
                continue
            if key in CLASS_STATEMENT_NAMES:
                continue
            is_data = not (callable(value) or hasattr(value, "__get__"))
            if key.startswith("__") and is_data and type(value) not in PLAIN_TYPES:
                if key in ADDED_NAMES or type(value) not in SEQUENCES:
                    continue  # what the class statement, or a metaclass, adds to what the source says
                parts += [key, self._optionally(value)]
                continue
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
        return self._optionally(item.__doc__) + self._optionally(annotations)

    def _optionally(self, value: Any) -> str:
        """Return the digest of what can be seen of a value; what cannot is left out."""
        before = self._optional, self._in_library
        self._optional, self._in_library = True, False
        digest = self.visit(value, "")
        self._optional, self._in_library = before
        return digest

    def _builtin(self, function: BuiltinFunctionType | MethodWrapperType, name: str) -> str:
        owner: Any = function.__self__
        parts = [function.__qualname__]
        if function in READER_FUNCTIONS:
            self.readers[function.__name__] = None
        if isinstance(owner, ModuleType):
            parts.append(self._module(owner))
        elif owner is not None:
            parts.append(self.visit(owner, name))
        return self.combine("builtin", *parts)

    # data

    def _disguised(self, value: Any, name: str) -> str:
        """Return the digest of a proxy by what it is made of, whatever it says that it is."""
        kind: type[Any] = cast(Any, type(value))
        if has_hidden_state(kind):
            raise Unseen
        return self.combine("proxy", self.visit(kind, name), self._attributes(state_of(value), name))

    def _instance(self, value: Any, name: str) -> str:
        kind: type[Any] = cast(Any, type(value))
        if kind in IGNORED_TYPES:
            return self.combine("ignored", kind.__name__)
        if isinstance(value, enum.Enum):
            return self.combine("enum", self.visit(kind, name), value.name, self._attributes(vars(value), name))
        if isinstance(value, PurePath):
            return self.combine("path", self._plain(str(value)))
        if isinstance(value, MappingProxyType):
            return self.combine("proxy", self._owned(value, dict(cast("Mapping[Any, Any]", value)), name))
        content = describe_value(value, sampled=self._sampled)
        if content is not None:
            return self._library_value(value, content, name)
        class_digest = self.visit(kind, name)
        if isinstance(value, (*SEQUENCES, *PLAIN_TYPES)):
            base = self._collection(value, name)
            return self.combine("subclass", class_digest, base, self._attributes(state_of(value), name))
        if not has_hidden_state(kind):
            state = without_hashes(value) if is_installed_class(kind) else state_of(value)
            return self.combine("object", class_digest, self._attributes(state, name))
        if not is_installed_class(kind):
            raise Unseen
        return self.combine("reduced", class_digest, self._reduced(value, name))

    def _library_value(self, value: Any, content: LibraryValue, name: str) -> str:
        followed = self._owned(value, dict(content.followed), name)
        before = self._optional, self._in_library
        self._in_library = self._in_library or not self._optional
        self._optional = True
        optional = self._owned(value, dict(content.optional), name)
        self._optional, self._in_library = before
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
                pairs.append(self.visit(key, name) + self.visit(item, item_name(name, key)))
            return self.combine("dict", *pairs)
        if isinstance(value, SEQUENCES):
            kind = builtin_base(value, SEQUENCES)
            members = [
                self.visit(item, name) for item in list(kind.__iter__(value))
            ]  # whatever the class shows of itself
            if kind in (set, frozenset):
                return self.combine("set", *sorted(members))
            length = cast("deque[Any]", value).maxlen if isinstance(value, deque) else None
            return self.combine("list", str(length), *members)
        plain = builtin_base(value, PLAIN_TYPES)
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
            if not is_named(value, reduced):
                raise Unseen  # it is not found by its name, so its name says nothing
            return self.combine("global", reduced)
        function, arguments, *rest = cast("Sequence[Any]", reduced)
        parts: list[Any] = [function, arguments]
        if rest and rest[0] is not None:
            parts.append(rest[0])
        parts += [list(items) for items in rest[1:3] if items is not None]
        return self.combine("reduced", self._owned(value, parts, name))
