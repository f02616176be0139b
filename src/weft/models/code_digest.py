"""Where a user's own code is defined, and its source.

A file is identified by its path inside the project that holds the journal, so that a project can be copied; a file
elsewhere by its absolute path. Code from a notebook has no lasting file: it is identified by its name.
"""

import dis
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from msgspec import Struct

from weft.secrets import SECRET_NAME

OWN_PACKAGES = ("weft", "weft_tabletop")
PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})
ENVIRONMENT_READERS = frozenset({"environ", "getenv"})
# Variables that say where a process runs, and not what it answers.
PLACE_VARIABLES = frozenset(
    {"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    | {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM"}
    | {"HOME", "USER", "PATH", "PWD", "TMPDIR", "HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME"}
)
ATTRIBUTE_LOOK_UPS = frozenset({"getattr", "vars", "__dict__"})
LOOK_UPS = ATTRIBUTE_LOOK_UPS | {"globals", "modules", "eval", "exec"}  # of names in a text


class CodeSource(Struct, frozen=True):
    """Where a user's model is defined."""

    location: str  # its file and name, as part of cache keys
    previous_location: str  # the same in older cache keys; "" if it did not change
    name: str  # for people: the file's name and its own
    digest: str  # of its source


def read_source(thing: Any, project: Path) -> CodeSource:
    """Return where a function, a class or an object's class is defined, with a digest of its source alone."""
    target: Any = thing
    while isinstance(target, functools.partial):
        target = cast(Any, target).func
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = cast(Any, type(target))
    name = str(target.__qualname__).rpartition("<locals>.")[2]
    digest = _digest_code(target)
    file = _lasting_file(target)
    if file is None:
        return CodeSource(f"notebook:{name}", "", name, digest)
    absolute = f"{file}:{name}"
    short_name = f"{file.name}:{name}"
    if file.is_relative_to(project):
        relative = f"{file.relative_to(project).as_posix()}:{name}"
        return CodeSource(relative, absolute, short_name, digest)
    return CodeSource(absolute, "", short_name, digest)


def _lasting_file(target: Any) -> Path | None:
    """Return the file that defines the target; None for a notebook cell or code typed into a prompt."""
    try:
        file = Path(inspect.getfile(target)).absolute()
    except (OSError, TypeError):
        return None
    if file.is_file() and "ipykernel" not in str(file):
        return file
    return None


def _digest_code(target: Any) -> str:
    text = ""
    if inspect.isclass(target):
        members = [*vars(target).values()]
        text = module_source(sys.modules.get(target.__module__))
    else:
        members = [target]
    for member in members:
        function = member
        if isinstance(member, (staticmethod, classmethod, MethodType)):
            function = cast(Any, member).__func__
        if isinstance(function, FunctionType):
            text += source_of(function)
    return "source:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@functools.cache
def _folders(*names: str) -> tuple[str, ...]:
    folders = [sysconfig.get_paths()[name] for name in names]
    return tuple(f"{folder}/" for folder in dict.fromkeys(folders))


def belongs_to_weft(module: str) -> bool:
    """Return whether a module is weft's own."""
    return module.partition(".")[0] in OWN_PACKAGES


def is_installed(module: str, file: str | None) -> bool:
    """Return whether code belongs to Python, an installed package or weft, and not to the user."""
    package = module.partition(".")[0]
    if belongs_to_weft(module) or package == "builtins":
        return True
    if package == "__main__":
        return False
    if file is None:  # compiled into Python, or into a library
        outer = sys.modules.get(package)
        if outer is not None and package != module and module_file(outer) is not None:
            return is_installed(package, module_file(outer))
        return package in sys.builtin_module_names or package in sys.stdlib_module_names
    if file.startswith("<frozen"):
        return True
    return file.startswith(_folders("stdlib", "platstdlib")) or _is_of_package(file)


def _is_of_package(file: str) -> bool:
    """Return whether a file belongs to an installed package, be it of this environment, the system or the user."""
    return file.startswith(_folders("purelib", "platlib")) or not PACKAGE_FOLDERS.isdisjoint(Path(file).parts)


def installed_source(module: str) -> str:
    """Return a digest of an installed module's file; "" if it belongs to Python or to weft."""
    if belongs_to_weft(module) or module not in sys.modules:
        return ""
    file = module_file(sys.modules[module])
    if file is None or not _is_of_package(file):
        return ""
    return module_source(sys.modules[module])


def is_installed_class(kind: type) -> bool:
    """Return whether a class belongs to Python, an installed package or weft."""
    module = sys.modules.get(kind.__module__)
    if module is None:
        return False
    file = module_file(module)
    return is_installed(kind.__module__, file) or (file is not None and file.endswith((".so", ".pyd")))


def is_installed_code(item: FunctionType | type) -> bool:
    """Return whether a function or class belongs to Python, an installed package or weft."""
    if isinstance(item, FunctionType):
        return is_installed(str(item.__module__), item.__code__.co_filename)
    return is_installed_class(item)


def module_file(module: ModuleType) -> str | None:
    """Return the file of a module; None for a notebook, and for what is compiled into Python."""
    file = vars(module).get("__file__")
    if isinstance(file, str):
        return file
    return None


def module_source(module: ModuleType | None) -> str:
    """Return a digest of a module's file; "" for a notebook."""
    if module is None:
        return ""
    file = module_file(module)
    if file is None or "ipykernel" in file:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def source_of(item: FunctionType | type) -> str:
    """Return what identifies the code of a function or class.

    That is the file that it is in, if there is one, and a function's compiled code: the file may have been edited after
    it was imported, and two functions of one name may be in it.
    """
    source = module_source(sys.modules.get(str(item.__module__)))
    if isinstance(item, FunctionType):
        return f"{source} {item.__code__.co_firstlineno if source else ''} {_code_text(item.__code__)}"
    return source


def _code_text(code: CodeType) -> str:
    constants: list[str] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(_code_text(constant))
        elif isinstance(constant, frozenset):
            constants.append(repr(sorted(cast("frozenset[Any]", constant), key=repr)))
        else:
            constants.append(repr(constant))
    names = f"{code.co_names} {code.co_varnames} {code.co_freevars}"
    parameters = f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}"
    return f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {constants} {names} {parameters}"


def names_in(code: CodeType) -> set[str]:
    """Return all names that code and the functions inside of it use, globals and attributes alike."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def global_names_in(code: CodeType) -> set[str]:
    """Return the names of globals that code looks up, also those in a text, as in `globals()["net"]`."""
    names = set(_loaded_globals(code))
    if names_in(code) & LOOK_UPS:
        names |= _names_as_texts_in(code)
    return names


def attribute_names_in(code: CodeType) -> set[str]:
    """Return the names that code may look up in modules, also those in a text, as in `getattr(module, "net")`."""
    names = names_in(code)
    if names & LOOK_UPS:
        names |= _names_as_texts_in(code)
    return names


def read_environment(code: CodeType) -> Iterator[str]:
    """Yield the environment variables that code names, with their values; no secrets, and not where a process runs."""
    if not names_in(code) & ENVIRONMENT_READERS:
        return
    for name in sorted(_names_as_texts_in(code) & os.environ.keys() - PLACE_VARIABLES):
        if not SECRET_NAME.search(name):
            yield f"{name}={os.environ[name]}"


def _loaded_globals(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_NAME" or "GLOBAL" in step.opname:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded_globals(constant)


def texts_in(code: CodeType) -> Iterator[str]:
    """Yield all texts that code and the functions inside of it name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from texts_in(constant)
        elif isinstance(constant, str):
            yield constant


def _names_as_texts_in(code: CodeType) -> set[str]:
    return {text for text in texts_in(code) if text.isidentifier()}


def import_modules_in(function: FunctionType) -> list[ModuleType]:
    """Return the modules that a function imports when it is called. The user's own are imported now, as it would do.

    A module that is not there is left out. Raises whatever importing the user's module raises.
    """
    package = str(function.__globals__.get("__package__") or "")
    modules: list[ModuleType] = []
    for name, level in sorted(_imports_in(function.__code__)):
        absolute = importlib.util.resolve_name("." * level + name, package) if level and package else name
        if absolute not in sys.modules and not _is_own_module(absolute):
            continue
        modules.append(importlib.import_module(absolute))
    return modules


def _is_own_module(name: str) -> bool:
    """Return whether a module that is not imported yet is there, and neither Python's nor installed."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return False
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and not is_installed(top, spec.origin)


def _imports_in(code: CodeType) -> set[tuple[str, int]]:
    """Return the imports of code and the functions inside of it, each as a name and the dots in front of it."""
    imports: set[tuple[str, int]] = set()
    level: Any = 0
    before: Any = None
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":  # the constants before are the dots, then the names
            imports.add((str(step.argval), level if isinstance(level, int) else 0))
        level, before = before, step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            imports |= _imports_in(constant)
    return imports
