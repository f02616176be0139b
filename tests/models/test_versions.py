"""Two models that differ in anything are two models, however they are written; weft says so where it cannot tell."""

import functools
import gc
import importlib
import re
import sqlite3
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import weft
from weft.errors import ReuseWarning, UserError
from weft.models.endpoint import Endpoint, EndpointReply
from weft.models.object_digest import digest_object
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text

Build = Callable[[Any], Any]


class Client:
    """A connection: nobody can see what is behind it."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)


def version(model: Any, home: Path, **options: Any) -> str:
    return str(resolve_endpoint(model, Blobs(home / "blobs"), options).identity["version"])


class Ours:
    def __init__(self, step: Any) -> None:
        self.step = step

    def __call__(self, messages: Any, want: str) -> str:
        return str(self.step)

    def answer(self, messages: Any, want: str) -> str:
        return str(self.step)


class Slotted:
    __slots__ = ("step",)

    def __init__(self, step: Any) -> None:
        self.step = step

    def __call__(self, messages: Any, want: str) -> str:
        return str(self.step)


class Mine(Endpoint):
    def __init__(self, step: Any) -> None:
        super().__init__("mine")
        self.step = step

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        return EndpointReply((Text(str(self.step)),), "answered")


def with_step(messages: Any, want: str, step: Any = None) -> str:
    return str(step)


def as_closure(step: Any) -> Any:
    def model(messages: Any, want: str) -> str:
        return str(step)

    return model


def as_default(step: Any) -> Any:
    def model(messages: Any, want: str, *, _step: Any = step) -> str:
        return str(_step)

    return model


def as_decorated(step: Any) -> Any:
    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def model(messages: Any, want: str) -> str:
            return str(function(messages, want)) + str(step)

        return model

    @decorate
    def model(messages: Any, want: str) -> str:
        return "it is "

    return model


def as_global(step: Any) -> Any:
    """A function of a notebook that uses a global."""
    module = types.ModuleType("__main__")
    exec("def model(messages, want):\n    return str(net)", module.__dict__)
    module.__dict__["net"] = step
    return module.__dict__["model"]


def as_class_attribute(step: Any) -> Any:
    return type("Ours", (Ours,), {"step": step, "__init__": lambda self: None, "__module__": __name__})


WAYS: dict[str, Build] = {
    "instance": Ours,
    "slots": Slotted,
    "endpoint": Mine,
    "bound method": lambda step: Ours(step).answer,
    "closure": as_closure,
    "partial": lambda step: functools.partial(with_step, step=step),
    "lambda": lambda step: lambda messages, want: str(step),  # pyright: ignore[reportUnknownLambdaType]
    "default argument": as_default,
    "decorated": as_decorated,
    "cached": lambda step: functools.lru_cache(as_closure(step)),
    "global": as_global,
    "class attribute": as_class_attribute,
}


@pytest.mark.parametrize("way", WAYS)
def test_two_checkpoints_are_two_models_and_the_same_one_is_one(way: str, tmp_path: Path):
    build = WAYS[way]
    one, two, again = (version(build(step), tmp_path) for step in ("step-2000", "step-1000", "step-2000"))
    assert one != two and one == again and one.startswith("source:")


@pytest.mark.parametrize("way", WAYS)
def test_what_weft_cannot_see_into_is_never_taken_for_another(way: str, tmp_path: Path):
    build = WAYS[way]
    first = build(Client("a"))
    second = build(Client("a"))
    one = resolve_endpoint(first, Blobs(tmp_path / "blobs"))
    assert str(one.identity["version"]).startswith("object:") and "connection (Connection)" in one.version_note
    assert version(first, tmp_path) == one.identity["version"], "the same object is the same model"
    assert version(second, tmp_path) != one.identity["version"]
    if way not in (
        "endpoint",
        "class attribute",
        "slots",
        "bound method",
        "cached",
    ):  # which cannot be given attributes here
        first.version = "7"
        assert version(first, tmp_path) == "7"


def test_an_object_that_comes_after_another_is_gone_is_another(tmp_path: Path):
    versions: set[str] = set()
    for _ in range(20):  # the memory of one is often given to the next
        versions.add(version(Ours(Client("a")), tmp_path))
        gc.collect(1)  # what is young: a process of many tests has too much to look through it all
    assert len(versions) == 20


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": [1, {2, 3}]}, {"a": [1, {2, 4}]}),
        (1, True),
        (1, 1.0),
        ("1", b"1"),
        ((1, 2), (2, 1)),
        (Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")),
        (Path("a"), Path("b")),
        (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)),
        (type("D", (dict,), {})(a=1), type("D", (dict,), {})(a=2)),
        (range(3), range(4)),
        (10**6000, 10**6000 + 1),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})),
        (int | None, int | str),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_differ(one: Any, two: Any):
    assert digest_object(one).digest != digest_object(two).digest and not digest_object(one).opaque
    assert digest_object(one) == digest_object(one)


def test_arrays_count_by_their_numbers():
    import numpy as np

    values = np.arange(6.0)
    other = values.copy()
    assert digest_object(values) == digest_object(other)
    other[3] += 1e-9
    assert digest_object(values) != digest_object(other) != digest_object(values.reshape(2, 3))


def test_an_object_that_holds_itself_ends():
    ours = Ours(None)
    ours.step = [ours]
    assert digest_object(ours).digest == digest_object(ours).digest


def test_two_lambdas_on_one_line_are_two(tmp_path: Path):
    models: list[Any] = [lambda messages, want: "a", lambda messages, want: "b"]
    assert version(models[0], tmp_path) != version(models[1], tmp_path)


def test_a_file_of_weights_counts_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    weights = tmp_path / "last.pt"
    weights.write_bytes(b"2000")
    one = version(Ours(str(weights)), tmp_path)
    assert version(Ours(str(weights)), tmp_path) == one
    weights.write_bytes(b"1000, further")
    assert version(Ours(str(weights)), tmp_path) != one
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"1")
    one = version(Ours(folder), tmp_path)
    (folder / "model.safetensors").write_bytes(b"22")
    assert version(Ours(folder), tmp_path) != one
    # a file that the code itself opens, of a model in a file
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text('def model(messages, want):\n    return open("last.pt").read()\n')
    one = version("mine.py:model", tmp_path)
    assert version("mine.py:model", tmp_path) == one
    weights.write_bytes(b"further still")
    assert version("mine.py:model", tmp_path) != one


def test_the_parts_of_a_pipeline_count_and_checkpoints_beside_each_other_do_not(tmp_path: Path):
    pipeline = tmp_path / "checkpoints" / "step-1000"
    (pipeline / "unet").mkdir(parents=True)
    (pipeline / "model_index.json").write_text("{}")
    weights = pipeline / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(b"1")
    one, root = version(Ours(str(pipeline)), tmp_path), version(Ours(str(pipeline.parent)), tmp_path)
    assert version(Ours(str(pipeline)), tmp_path) == one
    weights.write_bytes(b"22")
    assert version(Ours(str(pipeline)), tmp_path) != one
    assert version(Ours(str(pipeline.parent)), tmp_path) == root, "the folder of all checkpoints is none itself"


def test_a_prompt_that_looks_like_a_path_is_a_text(tmp_path: Path):
    prompt = "/no_think " + 40 * "Look at the images. "
    assert version(Ours(prompt), tmp_path) != version(Ours(prompt + "!"), tmp_path)


CLASS_OF_A_NOTEBOOK = """
class Answer:
    "TEXT"
    colour: TYPE

def model(messages, want):
    return Answer.__doc__ + str(Answer.__annotations__)
"""


@pytest.mark.parametrize(("text", "kind"), [("Which colour?", "int"), ("What?", "str")])
def test_docstrings_and_annotations_of_a_notebook_count(text: str, kind: str, tmp_path: Path):
    def model(text: str, kind: str) -> Any:
        names: dict[str, Any] = {"__name__": "notebook"}
        exec(CLASS_OF_A_NOTEBOOK.replace("TEXT", text).replace("TYPE", kind), names)
        return names["model"]

    one = version(model("What?", "int"), tmp_path)
    assert version(model("What?", "int"), tmp_path) == one != version(model(text, kind), tmp_path)


def test_the_arguments_of_a_script_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def model(messages: Any, want: str) -> str:
        return sys.argv[1]

    versions: list[str] = []
    for step in ("2000", "1000", "2000"):
        monkeypatch.setattr(sys, "argv", ["script.py", step])
        versions.append(version(model, tmp_path))
    assert versions[0] == versions[2] != versions[1]


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_a_package_of_another_environment_is_installed(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As of a system whose packages a virtual environment may use: its globals are its own affair."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "their_package.py").write_text(
        "import sqlite3\nclient = sqlite3.connect(':memory:')\n"
        "class Net:\n    def __call__(self, messages, want):\n        return str(client)\n"
    )
    monkeypatch.syspath_prepend(tmp_path / folder)
    seen = digest_object(importlib.import_module("their_package").Net())
    sys.modules.pop("their_package")
    assert not seen.opaque


def test_an_object_that_raises_when_it_is_looked_at_is_an_error_of_one_line(tmp_path: Path):
    class Broken:
        def __getattr__(self, name: str) -> Any:
            return {}[name]

        def __call__(self, messages: Any, want: str) -> str:
            return "x"

    with pytest.raises(UserError, match="Broken: its attribute 'name' raised KeyError.*must raise AttributeError"):
        version(Broken(), tmp_path)


def test_a_model_that_reads_when_it_is_called_says_what_is_assumed(tmp_path: Path):
    def model(messages: Any, want: str) -> str:
        return Path("notes.txt").read_text()

    note = resolve_endpoint(model, Blobs(tmp_path / "blobs")).version_note
    assert "assumes" in note and "reads when it is called (read_text)" in note


def test_an_installed_model_that_is_upgraded_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "installed_model.py"
    monkeypatch.setattr("weft.models.code_digest._folders", lambda *names: (f"{tmp_path}/",))
    monkeypatch.syspath_prepend(tmp_path)

    def install(answer: str) -> Any:
        file.write_text(f"class Model:\n    def __call__(self, messages, want):\n        return {answer!r}\n")
        sys.modules.pop("installed_model", None)
        importlib.invalidate_caches()
        return importlib.import_module("installed_model").Model()

    one = version(install("a"), tmp_path)
    assert version(install("a"), tmp_path) == one != version(install("longer"), tmp_path)


def test_a_function_that_was_edited_after_its_import_is_not_the_one_in_the_file(tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text('def model(messages, want):\n    return "a"\n')
    from weft.plugins import load_object

    old = load_object(f"{file}:model")
    one = version(old, tmp_path)
    file.write_text('def model(messages, want):\n    return "b"\n')
    stale = version(old, tmp_path)
    assert len({one, stale, version(load_object(f"{file}:model"), tmp_path)}) == 3


def test_a_model_of_a_file_says_what_is_assumed(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "import sqlite3\nconnection = sqlite3.connect(':memory:', check_same_thread=False)\n"
        "def model(messages, want):\n    return str(connection)\n"
    )
    endpoint = resolve_endpoint(f"{tmp_path / 'mine.py'}:model", Blobs(tmp_path / "blobs"))
    assert "assumes" in endpoint.version_note and "connection (Connection)" in endpoint.version_note
    assert str(endpoint.identity["version"]).startswith("source:")


def evaluate(toy: Path, home: Path, model: Any, **more: Any) -> weft.Run:
    return weft.evaluate("weave", data=toy, home=home, model=model, judge="constant/5", **more)


def texts(run: weft.Run) -> set[str]:
    return {turn.reply.text for turn in run.turns if turn.reply.text}


def test_two_instances_give_two_runs_with_their_own_answers(toy: Path, tmp_path: Path):
    one, two = (evaluate(toy, tmp_path, Ours(step)) for step in ("step-2000", "step-1000"))
    assert one.id != two.id and texts(one) == {"step-2000"} and texts(two) == {"step-1000"}
    calls: list[int] = []

    def counted(messages: Any, want: str) -> str:
        calls.append(1)
        return "x"

    counted.version = "1"  # pyright: ignore[reportFunctionMemberAccess]
    first = evaluate(toy, tmp_path, counted)
    asked = len(calls)
    assert evaluate(toy, tmp_path, counted).id == first.id and len(calls) == asked > 0
    fresh = evaluate(toy, tmp_path, counted, fresh=True)
    assert fresh.id != first.id and len(calls) == 2 * asked, "whatever is cached"
    assert evaluate(toy, tmp_path, counted, reuse=fresh.id).id == fresh.id and len(calls) == 2 * asked
    with pytest.raises(UserError, match="exclude"):
        evaluate(toy, tmp_path, counted, reuse=fresh.id, fresh=True)


def test_an_opaque_model_is_asked_again_unless_the_user_says_that_it_is_the_same(toy: Path, tmp_path: Path):
    asked: list[str] = []

    class Remote:
        version = None

        def __init__(self, step: str) -> None:
            self.client = Client(step)

        def __call__(self, messages: Any, want: str) -> str:
            asked.append(self.client.said)
            return self.client.said

    Remote.__module__ = "nowhere"  # so that this test's list is not part of it
    one = Remote("2000")
    with pytest.warns(ReuseWarning, match=r"cannot see into .*client.connection \(Connection\).*this object alone"):
        first = evaluate(toy, tmp_path, functools.partial(one))
    count = len(asked)
    second = evaluate(toy, tmp_path, functools.partial(Remote("1000")))
    assert second.id != first.id and texts(second) == {"1000"} and len(asked) == 2 * count
    third = evaluate(toy, tmp_path, functools.partial(Remote("1000")), reuse=second.id)
    assert third.id == second.id and len(asked) == 2 * count, "the user vouches for it"
    with pytest.raises(UserError, match="cannot continue"):
        evaluate(toy, tmp_path, Ours("1"), reuse=second.id)


NOTEBOOK = """
import sys, weft
class Net:
    def __init__(self, step): self.step = step
    def __call__(self): return self.step
net = Net(sys.argv[1])
def model(messages, want):
    print("asked")
    return net()
run = weft.evaluate("weave", data=sys.argv[2], home=sys.argv[3], model=model, judge="constant/5")
print("text", {turn.reply.text for turn in run.turns if turn.reply.text})
"""


def test_a_notebook_that_is_started_again_keeps_its_answers_and_another_net_does_not(toy: Path, tmp_path: Path):
    def start(step: str) -> tuple[str, str]:
        # as a notebook has it: __main__ without a file
        command = [sys.executable, "-c", textwrap.dedent(NOTEBOOK), step, str(toy), str(tmp_path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout, done.stderr

    first, notes = start("2000")
    assert "asked" in first and "ReuseWarning" not in notes
    again, notes = start("2000")
    assert "asked" not in again and "{'2000'}" in again and "ReuseWarning" not in notes
    other, notes = start("1000")
    assert "asked" in other and "{'1000'}" in other and "are not reused for this model" in notes


def test_nothing_is_said_where_everything_can_be_seen(toy: Path, tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(toy, tmp_path, Ours("step-1"))
