"""What changes a model's answers from afar: libraries that the user patches, settings, files that it names, proxies."""

import importlib
import json
import os
import socket
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

import weft
from weft.errors import ReuseWarning
from weft.models.endpoint import Endpoint, EndpointReply
from weft.models.object_digest import digest_object, digest_roughly
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text


def version(model: Any, home: Path) -> str:
    return str(resolve_endpoint(model, Blobs(home / "blobs")).identity["version"])


def mine(*arguments: Any) -> str:
    return "mine"


class Mine:
    said = "mine"


def rotates(messages: Any, want: str) -> str:
    return str(Image.Image.rotate)


def decodes(messages: Any, want: str) -> str:
    return str(json.JSONDecoder("x"))  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("model", "target", "value"),
    [
        (rotates, "PIL.Image.Image.rotate", mine),
        (rotates, "PIL.Image.Image.rotate", property(mine)),
        (rotates, "PIL.Image.Image.rotate", staticmethod(mine)),
        (rotates, "PIL.Image.Image.rotate", Mine()),
        (decodes, "json.decoder.scanstring", mine),
        (decodes, "json.scanner.make_scanner", mine),
    ],
    ids=["method", "property", "static method", "object", "function beside a class", "function of a module beside it"],
)
def test_what_a_user_puts_into_a_library_counts(
    model: Any, target: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = version(model, tmp_path)
    monkeypatch.setattr(target, value)
    assert version(model, tmp_path) != before and before.startswith("source:")
    monkeypatch.undo()
    assert version(model, tmp_path) == before


def test_a_patched_layer_makes_another_net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.SiLU())

    def model(messages: Any, want: str) -> str:
        return str(net)

    def patched() -> Iterator[str]:
        yield version(model, tmp_path)
        for target in ("torch.nn.SiLU.forward", "torch.nn.functional.silu"):
            monkeypatch.setattr(target, mine)
            yield version(model, tmp_path)
            monkeypatch.undo()
        hook = torch.nn.modules.module.register_module_forward_hook(mine)
        yield version(model, tmp_path)
        hook.remove()
        torch.set_default_dtype(torch.float64)
        yield version(model, tmp_path)
        torch.set_default_dtype(torch.float32)

    versions = list(patched())
    assert len(set(versions)) == 5 and version(model, tmp_path) == versions[0]
    assert all(one.startswith("source:") for one in versions)


def test_the_users_own_object_in_a_librarys_layer_is_looked_into(tmp_path: Path):
    torch = pytest.importorskip("torch")

    class Processor:
        def __init__(self, step: Any) -> None:
            self.step = step

    def model(step: Any) -> Any:
        layer = torch.nn.Identity()
        layer.processor = Processor(step)
        return lambda messages, want: str(layer)  # pyright: ignore[reportUnknownLambdaType]

    assert version(model(1), tmp_path) != version(model(2), tmp_path)
    assert version(model(iter_of_nothing()), tmp_path).startswith("object:")


def iter_of_nothing() -> Iterator[int]:
    yield from ()


def test_a_number_that_a_library_draws_by_hash_is_no_difference():
    kind = type("Config", (), {"__module__": "PIL.Image"})
    one, two = kind(), kind()
    one._object_hash, two._object_hash = 1, 2
    assert digest_object(one) == digest_object(two)
    one.scale, two.scale = 1, 2
    assert digest_object(one) != digest_object(two)


def compiled(text: str) -> Any:
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(text, scope)
    return scope["model"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("def model(messages, want, *x): return x", "def model(messages, want, **x): return x"),
        ("def model(messages, want, x=1): return x", "def model(messages, want, *, x=1): return x"),
    ],
    ids=["kinds of parameters", "keyword only"],
)
def test_parameters_count(one: str, two: str):
    assert digest_object(compiled(one)).digest != digest_object(compiled(two)).digest


def test_data_of_a_class_with_two_underscores_counts():
    def kind(step: int) -> Any:
        return type("Ours", (), {"__steps__": [step], "__call__": mine, "__module__": __name__})

    assert digest_object(kind(1)).digest != digest_object(kind(2)).digest


def test_what_a_library_makes_of_a_function_is_not_known_by_its_name():
    def add(step: int) -> Any:
        return np.frompyfunc(lambda x: x + step, 1, 1)  # pyright: ignore

    assert digest_object(add(1)).opaque and not digest_object(np.add).opaque


class Spoofed:
    """A proxy: it says that it is what it stands for."""

    def __init__(self, step: int, claimed: type) -> None:
        self.step = step
        self.claimed = claimed

    @property
    def __class__(self) -> type:
        return self.claimed

    @__class__.setter
    def __class__(self, value: Any) -> None: ...

    def __call__(self, messages: Any, want: str) -> str:
        return str(self.step)


@pytest.mark.parametrize("claimed", [types.ModuleType, types.FunctionType, int, dict, Path])
def test_a_proxy_counts_by_what_it_is(claimed: type):
    one, two, again = (digest_object(Spoofed(step, claimed)) for step in (1, 2, 1))
    assert one == again != two


MODULES = {
    "far_state.py": "state = {'step': 1}\ndef __getattr__(name):\n    return state[name]\n",
    "far_values.py": "import types\nnet = types.SimpleNamespace(step=1)\nname = 'net'\n",
    "far_models.py": (
        "import sys\nimport far_state, far_values\nnet = 1\n"
        "def late(messages, want):\n    return str(far_state.step)\n"
        "def computed(messages, want):\n    return str(getattr(far_values, far_values.name[:]))\n"
        "def itself(messages, want):\n    return str(sys.modules[__name__].net)\n"
    ),
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("far_models")
    for name in MODULES:
        sys.modules.pop(name.removesuffix(".py"), None)


def set_late(models: Any) -> None:
    models.far_state.state["step"] = 2


def set_computed(models: Any) -> None:
    models.far_values.net.step = 2


def set_itself(models: Any) -> None:
    models.net = 2


@pytest.mark.parametrize("change", [set_late, set_computed, set_itself])
def test_what_a_module_is_asked_for_by_a_computed_name_counts(
    change: Callable[[Any], None], modules: Any, tmp_path: Path
):
    model = vars(modules)[change.__name__.removeprefix("set_")]
    before = version(model, tmp_path)
    assert version(model, tmp_path) == before
    change(modules)
    assert version(model, tmp_path) != before


def note(model: Any, home: Path) -> str:
    return resolve_endpoint(model, Blobs(home / "blobs")).version_note


def test_a_file_that_a_model_names_is_named_in_the_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompt.txt").write_text("Look.")

    class Ours:
        def __init__(self, prompt: str) -> None:
            self.prompt = prompt

        def __call__(self, messages: Any, want: str) -> str:
            return mine(self.prompt)

    def by_constant(messages: Any, want: str) -> str:
        return mine("prompt.txt")

    read = open

    def by_another_name(messages: Any, want: str) -> str:
        return read(want).read()

    assert "prompt.txt" in note(Ours("prompt.txt"), tmp_path) and "prompt.txt" in note(by_constant, tmp_path)
    assert "prompt.txt" in note(Ours(cast(Any, Path("prompt.txt"))), tmp_path)
    assert "(open)" in note(by_another_name, tmp_path)
    assert note(Ours(__file__), tmp_path) == "", "code counts by itself"
    assert note(Ours("a prompt. Or two."), tmp_path) == "" == note(Ours("missing.txt"), tmp_path)


class Versioned:
    """A model whose version the user set once, on the class."""

    name, version = "ours", "1"

    def __init__(self, step: Any) -> None:
        self.step = step

    def __call__(self, messages: Any, want: str) -> str:
        return str(self.step)


class VersionedEndpoint(Endpoint):
    def __init__(self, step: str) -> None:
        super().__init__("mine", version="1")
        self.step = step

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        return EndpointReply((Text(self.step),), "answered")


class VersionedJudge:
    name, version = "strict", "1"

    def __init__(self, score: int) -> None:
        self.score = score

    def __call__(self, messages: Any, want: str) -> Any:
        return {"reasoning": "", "score": self.score}


def notes_of(toy: Path, home: Path, model: Any, judge: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weft.evaluate("weave", data=toy, home=home, model=model, judge=judge)
    return [str(one.message) for one in caught if one.category is ReuseWarning]


def test_a_version_that_stays_while_values_change_is_believed_and_it_is_said(toy: Path, tmp_path: Path):
    home = tmp_path / "home"
    assert not notes_of(toy, home, Versioned("step-2000"), VersionedJudge(5))
    assert not notes_of(toy, home, Versioned("step-2000"), VersionedJudge(5))
    for _ in range(2):  # not the first time alone
        (note,) = notes_of(toy, home, Versioned("step-1000"), VersionedJudge(5))
        assert "the code or a value of ours has changed, its version '1' has not: answers of weave-ours" in note
    assert not notes_of(toy, home, VersionedEndpoint("step-2000"), VersionedJudge(5))
    assert not notes_of(toy, home, VersionedEndpoint("step-2000"), VersionedJudge(5))
    (note,) = notes_of(toy, home, VersionedEndpoint("step-1000"), VersionedJudge(5))
    assert "a value of mine has changed, its version '1' has not" in note
    (note,) = notes_of(toy, home, Versioned("step-2000"), VersionedJudge(10))
    assert "a value of strict has changed" in note and "verdicts of weave-" in note


def test_weights_are_not_read_for_a_model_that_has_a_version():
    one, two = np.zeros(100_000), np.zeros(100_000)
    two[-1] = 1
    assert digest_roughly(Versioned(one)) == digest_roughly(Versioned(two))
    two[0] = 1
    assert digest_roughly(Versioned(one)) != digest_roughly(Versioned(two))


def test_weights_of_the_same_size_and_time_in_the_same_file_are_other_weights(tmp_path: Path):
    weights = tmp_path / "last.pt"
    pipeline = tmp_path / "pipeline"
    (pipeline / "unet").mkdir(parents=True)
    (pipeline / "model_index.json").write_text("{}")
    part = pipeline / "unet" / "model.safetensors"

    class Ours:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __call__(self, messages: Any, want: str) -> str:
            return mine(self.path)

    seen: list[tuple[str, str]] = []
    for content in (b"2000", b"1000"):
        for file in (weights, part):
            file.write_bytes(content)
            os.utime(file, (0, 0))
        seen.append((version(Ours(weights), tmp_path), version(Ours(pipeline), tmp_path)))
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


def test_what_is_opaque_counts_also_where_an_annotation_named_its_class_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    line = socket.socket()

    def patched(self: Any, text: str) -> str:
        return str(line.recv(1))

    def annotated(decoder: json.JSONDecoder | None = None) -> str:
        return json.JSONDecoder().decode("1")

    def plain(decoder: Any = None) -> str:
        return json.JSONDecoder().decode("1")

    assert not digest_object(annotated).opaque
    monkeypatch.setattr("json.JSONDecoder.decode", patched)
    assert digest_object(plain).opaque and digest_object(annotated).opaque
    line.close()


def test_all_of_an_array_counts_that_a_model_may_take_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "held_weights.py").write_text("import numpy as np\nW = np.zeros(1000)\n")
    monkeypatch.syspath_prepend(tmp_path)
    held: Any = importlib.import_module("held_weights")
    key = ["W"]

    def model(messages: Any, want: str) -> str:
        return str(getattr(held, key[0]).sum())

    before = digest_object(model).digest
    held.W[500] = 1
    assert digest_object(model).digest != before
    held.W[500] = 0
    assert digest_object(model).digest == before
