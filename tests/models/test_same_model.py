"""What a model's answers can depend on and cannot be read off its own code: all of it counts when models are compared."""

import collections
import functools
import importlib
import json
import os
import sqlite3
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import weft
from weft.errors import UserError
from weft.models.object_digest import digest_object
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs

Model = Callable[[Any, str], str]


def version(model: Any, home: Path) -> str:
    return str(resolve_endpoint(model, Blobs(home / "blobs")).identity["version"])


class Client:
    """A connection: nobody can see what is behind it."""

    def __init__(self, said: str = "") -> None:
        self.said = said
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)


class Quiet(str):
    """A text that does not show itself."""

    def __str__(self) -> str:
        return "***"


class Hidden(list[int]):
    """A list that does not show what is in it."""

    def __iter__(self) -> Any:
        return iter(())


class HiddenSet(set[int]):
    def __iter__(self) -> Any:
        return iter(())


class Noted(np.ndarray):  # pyright: ignore[reportMissingTypeArgument]
    step = 0


def with_palette(red: int) -> Image.Image:
    image = Image.new("P", (2, 2))
    image.putpalette([red, 0, 0] * 256)
    return image


def masked(*mask: bool) -> Any:
    return np.ma.MaskedArray(np.array([1, 2]), mask=np.array(mask))


def noted(step: int) -> Any:
    array = np.zeros(2).view(Noted)
    array.step = step
    return array


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (with_palette(1), with_palette(2)),
        (masked(False, True), masked(True, False)),
        (noted(1), noted(2)),
        (Quiet("a"), Quiet("b")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (collections.deque([1], maxlen=2), collections.deque([1], maxlen=3)),
        (Hidden([1]), Hidden([2])),
        (HiddenSet([1]), HiddenSet([2])),
    ],
    ids=["palette", "mask", "attribute of an array", "text", "order", "length of a queue", "list", "set"],
)
def test_values_differ(one: Any, two: Any):
    assert digest_object(one).digest != digest_object(two).digest and not digest_object(one).opaque


def test_a_truncated_image_is_opaque_and_no_crash(tmp_path: Path):
    file = tmp_path / "a.png"
    Image.effect_noise((64, 64), 50).save(file)
    file.write_bytes(file.read_bytes()[:-2000])
    assert digest_object(Image.open(file)).opaque


def net(torch: Any, *, temperature: float = 1.0, bias: float | None = None, client: Client | None = None) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.inner = torch.nn.Identity()
            self._temperature = temperature
            if bias is not None:
                self.register_buffer("bias", torch.tensor(bias), persistent=False)
            if client is not None:
                self.client = client

    return Net()


def doubled(module: Any, inputs: Any, output: Any) -> Any:
    return output * 2


def test_what_a_torch_module_has_beside_its_weights_counts():
    torch = pytest.importorskip("torch")
    hooked = net(torch)
    hooked.inner.register_forward_hook(doubled)
    tensor = torch.zeros(2)
    tensor.step = 1
    nets = [net(torch), net(torch, temperature=2.0), net(torch, bias=1.0), net(torch, bias=2.0), hooked]
    digests = [digest_object(value) for value in (*nets, torch.zeros(2), tensor)]
    assert len({seen.digest for seen in digests}) == len(digests) and not any(seen.opaque for seen in digests)
    assert digest_object(net(torch)) == digest_object(net(torch))


def test_weights_count_that_a_module_leaves_out_of_its_state():
    torch = pytest.importorskip("torch")

    def clear(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        state.clear()

    def linear(weight: float) -> Any:
        inner = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(inner.weight, weight)
        inner.register_state_dict_post_hook(clear)
        return torch.nn.Sequential(inner)

    one, two, again = (digest_object(linear(weight)) for weight in (1, 2, 1))
    assert one == again != two and not one.opaque


def test_an_opaque_part_of_a_torch_module_is_opaque(tmp_path: Path):
    torch = pytest.importorskip("torch")

    def model(client: Client) -> Any:
        inner = net(torch, client=client)

        def answers(messages: Any, want: str) -> str:
            return str(inner)

        return answers

    one = model(Client())
    assert version(one, tmp_path) == version(one, tmp_path) != version(model(Client()), tmp_path)


def test_scripts_of_torch_differ_by_their_code():
    torch = pytest.importorskip("torch")

    def traced(n: int) -> Any:
        class Adds(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return x + n

        with pytest.warns(DeprecationWarning):
            return torch.jit.trace(Adds(), torch.ones(1))

    one = torch.nn.Sequential(traced(1))
    assert digest_object(one) == digest_object(one) != digest_object(torch.nn.Sequential(traced(2)))
    assert not digest_object(one).opaque


class Remote:
    def __init__(self, client: Client) -> None:
        self.client = client

    def __call__(self, messages: Any, want: str) -> str:
        return self.client.said


@functools.lru_cache
def load_net() -> Any:
    return types.SimpleNamespace(step=1)


def uses_a_cached_net(messages: Any, want: str) -> str:
    return str(load_net().step)


class Meta(type):
    step = 1


class OfMeta(metaclass=Meta):
    def __call__(self, messages: Any, want: str) -> str:
        return str(Meta.__dict__["step"])


def answer(self: Any, messages: Any, want: str, step: int = 0) -> str:
    return str(step)


def with_partial_method(step: int) -> Any:
    return type("Ours", (), {"__call__": functools.partialmethod(answer, step=step), "__module__": __name__})()


client = Client("2000")


def uses_a_global_client(messages: Any, want: str) -> str:
    return client.said


def uses_globals(messages: Any, want: str) -> str:
    return str(globals()["setting"])


setting = 1


def mine(value: Any) -> str:
    return "mine"


def uses_installed_code(messages: Any, want: str) -> str:
    return json.dumps(1) + str(ImageOps.invert)


@pytest.mark.parametrize(
    ("model", "target", "value"),
    [
        (uses_a_global_client, f"{__name__}.client", Client("1000")),
        (uses_globals, f"{__name__}.setting", 2),
        (uses_installed_code, "json.dumps", mine),
        (uses_installed_code, "PIL.ImageOps.invert", mine),
        (OfMeta(), f"{__name__}.Meta.step", 2),
    ],
    ids=["opaque global", "global by its name", "standard library", "installed package", "metaclass"],
)
def test_what_is_exchanged_makes_another_model(
    model: Any, target: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = version(model, tmp_path)
    assert version(model, tmp_path) == before
    monkeypatch.setattr(target, value)
    assert version(model, tmp_path) != before
    monkeypatch.undo()
    assert version(model, tmp_path) == before


def test_methods_that_are_not_functions_count(tmp_path: Path):
    one, two, again = (version(with_partial_method(step), tmp_path) for step in (1, 2, 1))
    assert one == again != two


def test_a_cached_net_that_is_changed_is_another(tmp_path: Path):
    load_net.cache_clear()
    load_net().step = 2000
    one = version(uses_a_cached_net, tmp_path)
    assert version(uses_a_cached_net, tmp_path) == one and one.startswith("source:")
    load_net().step = 1000
    assert version(uses_a_cached_net, tmp_path) != one


MODULES = {
    "own_package/__init__.py": "",
    "own_package/settings.py": "step = 1\n",
    "own_lazy.py": "from own_package import settings\nclass Net:\n    step = 1\nnet = Net()\n",
    "own_models.py": (
        "import own_package.settings\n"
        "def nested(messages, want):\n    return str(own_package.settings.step)\n"
        "def lazy(messages, want):\n    import own_lazy\n    return str(own_lazy.net.step)\n"
        "def lazy_name(messages, want):\n    from own_lazy import net\n    return str(net.step)\n"
        "def by_text(messages, want):\n    import own_lazy\n    return str(getattr(own_lazy, 'net').step)\n"
        "def missing(messages, want):\n    import nothing_of_this_name\n"
    ),
    "own_held.py": "import types\nnet = types.SimpleNamespace(step=1)\n",
    "own_holders.py": (
        "import sys\nimport own_held\n"
        "def build():\n    import own_held\n"
        "    def model(messages, want):\n        return str(own_held.net.step)\n    return model\n"
        "class Holder:\n    def __init__(self):\n        self.library = own_held\n"
        "    def __call__(self, messages, want):\n        return str(self.library.net.step)\n"
        "enclosed, attribute = build(), Holder()\n"
        "def loaded(messages, want):\n    return str(sys.modules['own_held'].net.step)\n"
    ),
    "own_broken.py": "def model(messages, want):\n    import own_error\n",
    "own_error.py": "raise OSError('no GPU')\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.startswith("own_")]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    yield importlib.import_module("own_models")
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "change"),
    [("nested", "own_package.settings"), ("lazy", "own_lazy"), ("lazy_name", "own_lazy"), ("by_text", "own_lazy")],
)
def test_what_a_model_takes_from_the_users_modules_counts(name: str, change: str, modules: Any, tmp_path: Path):
    model = getattr(modules, name)
    before = version(model, tmp_path)
    model([], "text")
    assert version(model, tmp_path) == before, "whether a module is imported before the first call or by it"
    module = importlib.import_module(change)
    holder: Any = getattr(module, "net", module)
    holder.step = 2
    assert version(model, tmp_path) != before and before.startswith("source:")


@pytest.mark.parametrize("name", ["enclosed", "attribute", "loaded"])
def test_what_a_model_takes_from_a_module_that_it_holds_counts(name: str, modules: Any, tmp_path: Path):
    model = getattr(importlib.import_module("own_holders"), name)
    before = version(model, tmp_path)
    assert version(model, tmp_path) == before and before.startswith("source:")
    importlib.import_module("own_held").net.step = 2
    assert version(model, tmp_path) != before


def reads_the_environment(messages: Any, want: str) -> str:
    return os.environ["CHECKPOINT"] + os.environ["MODEL_API_KEY"] + os.environ["LOCAL_RANK"]


def test_environment_variables_count_that_code_names_but_no_secrets_and_not_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    chosen = {"CHECKPOINT": "1000", "MODEL_API_KEY": "a", "LOCAL_RANK": "0"}

    def version_with(**changed: str) -> str:
        for name, value in {**chosen, **changed}.items():
            monkeypatch.setenv(name, value)
        return version(reads_the_environment, tmp_path)

    before = version_with()
    assert version_with(CHECKPOINT="2000") != before == version_with(MODEL_API_KEY="b", LOCAL_RANK="1")


class Marked:
    def __call__(self, messages: Any, want: str) -> str:
        return str(vars(type(self))["__step__"])


def test_plain_attributes_of_a_class_count_whatever_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    versions: list[str] = []
    for step in (1, 2, 1):
        monkeypatch.setattr(Marked, "__step__", step, raising=False)
        versions.append(version(Marked(), tmp_path))
    assert versions[0] == versions[2] != versions[1]


def test_a_module_that_cannot_be_imported_is_opaque(modules: Any, tmp_path: Path):
    assert version(modules.missing, tmp_path).startswith("source:"), "the call itself will say so"
    model = importlib.import_module("own_broken").model
    note = resolve_endpoint(model, Blobs(tmp_path / "blobs")).version_note
    assert "what model imports (OSError: no GPU)" in note


def test_the_answers_of_one_client_are_not_those_of_the_next_in_the_same_object(toy: Path, tmp_path: Path):
    model = Remote(Client("2000"))

    def evaluate() -> weft.Run:
        return weft.evaluate("weave", data=toy, home=tmp_path, model=model, judge="constant/5")

    with pytest.warns(weft.errors.ReuseWarning):
        first = evaluate()
        model.client = Client("1000")
        second = evaluate()
    assert first.id != second.id
    assert {turn.reply.text for turn in second.turns if turn.reply.text} == {"1000"}


class Seeded:
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __call__(self, messages: Any, want: str) -> str:
        return str(self.seed)


def test_seeds_of_one_class_are_of_one_version_and_their_answers_are_their_own(tmp_path: Path):
    endpoints = [resolve_endpoint(Seeded, Blobs(tmp_path / "blobs"), {"seed": seed}) for seed in (1, 2)]
    one, two = (endpoint.identity for endpoint in endpoints)
    assert one["version"] == two["version"] and one != two


def test_a_run_that_is_continued_by_another_model_says_so(toy: Path, tmp_path: Path):
    def evaluate(model: Any, reuse: str = "") -> weft.Run:
        return weft.evaluate("weave", data=toy, home=tmp_path, model=model, judge="constant/5", reuse=reuse)

    def at_step(step: int, version: str = "") -> Any:
        def ours(messages: Any, want: str) -> str:
            return str(step)

        if version:
            ours.version = version  # pyright: ignore[reportFunctionMemberAccess]
        return ours

    seen, set_by_user = evaluate(at_step(2000)), evaluate(at_step(2000, "2000"))
    with pytest.warns(weft.errors.ReuseWarning, match=f"differs from the model of {seen.id}.* answers of both"):
        assert evaluate(at_step(1000), seen.id).id == seen.id
    with pytest.raises(UserError, match="cannot continue .* version 2000, and now it is 1000"):
        evaluate(at_step(1000, "1000"), set_by_user.id)
    assert evaluate(at_step(1000, "2000"), set_by_user.id).id == set_by_user.id
