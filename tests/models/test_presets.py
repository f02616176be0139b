"""Published settings as options: what a provider has for its own, what goes with every request, what it cannot be
told."""

from pathlib import Path

import pytest

import weft
from fakes import Fake, OpenAI, VllmOmni
from weft.errors import UserError
from weft.models.presets import apply_preset, is_judge_preset, load_presets
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs


def test_every_preset_has_settings_and_says_where_they_are_from():
    found = load_presets()
    assert len(found) > 50 and {name.partition("/")[0] for name in found} == {
        "weave",
        "weaver",
        "imug",
        "planviz",
        "rover",
    }
    assert (
        all((one.settings or "No settings" in one.note) and one.source for one in found.values())
        and is_judge_preset("rover/judge-tg")
        and not is_judge_preset("weave/bagel")
    )
    bagel = {name: found[name].settings["cfg_text_scale"] for name in ("weave/bagel", "imug/bagel", "planviz/bagel")}
    assert (
        bagel == {"weave/bagel": 4.0, "imug/bagel": 3.0, "planviz/bagel": 4.0}
        and found["rover/judge"].settings["max_tokens"] == 3000
    )


def test_what_is_given_wins_and_the_rest_goes_with_every_request(blobs: Blobs):
    made = apply_preset("weave/bagel", ("seed", "extra"), {"seed": "7", "extra": '{"cfg_img_scale": 1}'}, "x")
    assert made["seed"] == "7" and made["extra"]["cfg_img_scale"] == 1 and made["extra"]["cfg_text_scale"] == 4.0
    endpoint = resolve_endpoint("vllm-omni/bagel@http://127.0.0.1:9/v1", blobs, {}, preset="weave/bagel")
    assert (
        endpoint.identity["parameters"]["num_inference_steps"] == 50 and endpoint.identity["parameters"]["seed"] == 42
    )


@pytest.mark.parametrize(
    ("model", "preset", "said"),
    [
        ("infer/http://127.0.0.1:9/infer", "weave/bagel", "has no option cfg_text_scale"),
        ("copy", "weave/nobody", "there is no preset 'weave/nobody'; there is weave/anyedit"),
        ("copy", ("weave/bagel", "imug/bagel"), "two presets for the model"),
        ("cascade:reasoner=copy,painter=copy", "weave/bagel", "made of several"),
        ("reference", "weave/bagel", "reference is not called, so the preset weave/bagel sets nothing"),
        ("folder/somewhere", "weave/bagel", "is not called"),
    ],
)
def test_what_cannot_be_set_is_an_error_before_anything_is_asked(
    model: str, preset: str, said: str, toy: Path, tmp_path: Path
):
    with pytest.raises(UserError, match=said):
        weft.evaluate("weave", data=toy, model=model, judge="constant/1", home=tmp_path / "home", preset=preset)


def test_a_function_is_told_all_parameters_that_it_lacks_for_a_preset(blobs: Blobs):
    def model(messages: object, want: str, cfg: float = 1.0) -> str:
        return str(cfg)

    with pytest.raises(
        UserError, match=r"model lacks parameters that the preset weave/varedit-8b sets: tau, seed; its"
    ):
        resolve_endpoint(model, blobs, {}, preset="weave/varedit-8b")
    with pytest.raises(UserError, match="lacks .* cfg_prompt, cfg_schedule, temperature; its own are cfg. Add them"):
        resolve_endpoint(model, blobs, {}, preset="weave/unipic")

    def whole(messages: object, want: str, cfg: float = 1.0, tau: float = 1.0, seed: int = 0) -> str:
        return str((cfg, tau, seed))

    options = resolve_endpoint(whole, blobs, {}, preset="weave/varedit-8b").identity["options"]
    assert options == {"cfg": 3.0, "tau": 0.1, "seed": 42}


def test_the_two_papers_print_the_negative_prompt_of_omnigen2():
    prompts = [load_presets()[f"{paper}/omnigen2"].settings["negative_prompt"] for paper in ("weave", "rover")]
    assert all(len(prompt.split(", ")) == 16 and prompt.endswith("censor_bar") for prompt in prompts)


def test_a_run_sends_and_records_what_a_preset_sets(toy: Path, tmp_path: Path, stand):
    fake: Fake = stand(VllmOmni())
    run = weft.evaluate(
        "weave", data=toy, model=fake.name, judge="constant/10", home=tmp_path / "home", preset="weave/bagel", limit=2
    )
    assert fake.seen and all(asked.body["cfg_text_scale"] == 4.0 and asked.body["seed"] == 42 for asked in fake.seen)
    manifest = run.record.manifest
    assert manifest.presets == {"model": "weave/bagel"} and manifest.model.parameters["timestep_shift"] == 3.0
    assert manifest.model.takes["most"] == 1


def test_what_is_no_json_is_the_users_mistake(blobs: Blobs):
    with pytest.raises(UserError, match="option extra: not a JSON object"):
        apply_preset("weave/bagel", ("extra",), {"extra": "notjson"}, "x")


def test_a_run_that_is_judged_again_keeps_its_preset(toy: Path, tmp_path: Path, stand):
    options = {"data": toy, "home": tmp_path / "home", "preset": ("weave/bagel", "rover/judge"), "limit": 1}
    model, judge = stand(VllmOmni()), stand(OpenAI())
    run = weft.evaluate("weave", model=model.name, judge=judge.name, **options)
    assert run.record.manifest.presets == {"model": "weave/bagel", "judge": "rover/judge"}
    assert all(asked.body["max_tokens"] == 3000 and asked.body["temperature"] == 0 for asked in judge.seen)
    other = weft.judge(run.id, judge="constant/10", home=tmp_path / "home")
    assert other.record.manifest.presets == {"model": "weave/bagel"} and other.id != run.id
