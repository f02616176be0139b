"""What a user means by a model: text, an entry of weft.toml, a composition or an object becomes a `ModelSpec`, and
nothing is built yet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weft.errors import UserError
from weft.models.registry import (
    ModelSpec,
    Provider,
    build_model,
    load_provider,
    parse_model,
    provider_info,
    provider_options,
)
from weft.store.blobs import Blobs

URL = "http://127.0.0.1:9/v1"
CONFIG: Mapping[str, Any] = {
    "models": {"mine": {"use": f"openai-chat/m@{URL}", "seed": 1, "max_tokens": 5, "version": "v2"}}
}


def test_a_name_says_who_and_where():
    spec = parse_model(f"openai-chat/org/m@{URL}", {"seed": 3})
    assert (spec.provider, spec.model, spec.url, spec.options, spec.version) == (
        "openai-chat",
        "org/m",
        URL,
        {"seed": 3},
        None,
    )
    assert spec.factory is not None and spec.factory.info is not None and "seed" in spec.factory.options


def test_an_entry_of_weft_toml_is_under_the_command_line_and_has_its_own_name_and_version():
    spec = parse_model("mine", {"seed": 7}, CONFIG)
    assert spec.options == {"seed": 7, "max_tokens": 5} and (spec.name, spec.version) == ("mine", "v2")


def test_a_preset_is_under_what_is_given():
    spec = parse_model(f"openai-chat/m@{URL}", {"seed": 7}, preset="weave/bagel")
    assert spec.options["seed"] == 7 and spec.options["extra"]


def test_a_composition_has_a_spec_for_each_role(blobs: Blobs):
    spec = parse_model("cascade:reasoner=mine,painter=copy", {"reasoner.seed": 9}, CONFIG)
    assert {role: part.provider for role, part in spec.role_specs.items()} == {
        "reasoner": "openai-chat",
        "painter": "copy",
    }
    assert spec.role_specs["reasoner"].options["seed"] == 9
    wired = build_model(spec, blobs)
    assert wired.composition is spec.composition and list(wired.endpoints) == ["reasoner", "painter"]


def test_an_object_is_itself_and_its_attributes_do_not_make_it_a_provider(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "class Model:\n    options = {'a': int}\n    def __call__(self, messages, want):\n        return 'x'\n"
    )
    spec = parse_model(f"{tmp_path}/mine.py:Model", {"concurrency": 2})
    assert spec.factory is None and spec.user_object.__name__ == "Model" and spec.options == {"concurrency": 2}
    assert parse_model(len) == ModelSpec("", user_object=len)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        ("openai-chatt/m", {}, "did you mean openai-chat"),
        (f"openai-chat/m@{URL},", {}, "no address behind a comma"),
        (f"openai-chat/m@{URL}", {"name": "x"}, "together with a version"),
        ("cascade:reasoner=copy", {}, "has the roles reasoner, painter"),
        ("cascade:reasoner=copy,painter=copy", {"seed": 1}, "say whose it is"),
    ],
)
def test_what_means_nothing_is_one_line(model: str, given: dict[str, Any], said: str):
    with pytest.raises(UserError, match=said):
        parse_model(model, given)


def test_a_provider_carries_what_it_declares_in_any_order():
    def make(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> str:
        """Makes nothing."""
        return spec.model

    for made in (
        provider_info(address=True)(provider_options(a=int)(make)),
        provider_options(a=int)(provider_info(address=True)(make)),
    ):
        assert isinstance(made, Provider) and made.info is not None and made.info.address and made.options == {"a": int}
        assert made.make is make and made.__doc__ == "Makes nothing."


def test_no_entry_point_is_looked_for_where_a_name_is_ours(monkeypatch: pytest.MonkeyPatch):
    def never(group: str) -> Any:
        raise AssertionError(f"{group} was scanned")

    monkeypatch.setattr("weft.models.registry.find_entry_points", never)
    monkeypatch.setattr("weft.benchmarks.base.find_entry_points", never)
    from weft.benchmarks.base import is_known, load_benchmark

    assert load_provider("openai-chat").options and parse_model("copy").provider == "copy"
    assert is_known("weave") and load_benchmark("weave").name == "weave"
