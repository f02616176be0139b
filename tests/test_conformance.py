"""Official runs send what released scripts send and nothing else, and go on whatever the judge says. `python -m
conformance NAME CHECKOUT` shows the same beside the scripts themselves; here stand-ins for two checkouts are enough."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, model_answer
from toy import more_records, write_weave
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UnusableJudge

Serve = Callable[..., Provider]
QUICK = RetryPolicy(tries=2, base=0.001, cap=0.002)
PROMPTS = '''
prompt_keypoint_checklist = """Points of <image> are:
"""
prompt_visual_consistency = """Sameness of <image> with:
"""
prompt_image_quality = """Quality of <image>."""
prompt_txt_acc = """Grade {{}}. Right: {standard_answer} Said: {generated_answer}"""
'''


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question before a run and the patience with a judge are those of a user's run."""
    monkeypatch.setenv("WEFT_PREFLIGHT", "1")
    monkeypatch.setattr("weft.judges.vlm.MAX_UNUSABLE_REPLIES", 20)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "repo" / "eval").mkdir(parents=True)
    (tmp_path / "repo" / "eval" / "prompts.py").write_text(PROMPTS)
    return tmp_path / "repo"


def nonsense(seen: Seen) -> dict[str, Any]:
    """A model that does its work, and a judge that never says a score."""
    return {"role": "assistant", "content": "I would rather not."} if seen.is_judge else model_answer(seen)


def evaluate(data: Path, home: Path, server: Provider, **options: Any) -> weft.Run:
    ends = {"model": f"openai-chat/model@{server.url}", "judge": f"openai-chat/judge@{server.url}"}
    return weft.evaluate("weave", data=data, home=home, retry_policy=QUICK, **ends, **options)


def requests(server: Provider) -> list[str]:
    return sorted(repr((seen.body["model"], seen.shape)) for seen in server.seen)


def test_an_official_run_is_asked_nothing_before_it_begins(tmp_path: Path, serve: Serve, checkout: Path):
    data, official = write_weave(tmp_path / "data", more_records(2)), f"official:{checkout}"
    asked, plain, usual = serve(), serve(), serve()
    evaluate(data, tmp_path / "asked", asked, prompts=official, official=True)
    evaluate(data, tmp_path / "plain", plain, prompts=official, official=True, preflight=False)
    assert requests(asked) == requests(plain)
    evaluate(data, tmp_path / "usual", usual)
    assert any("what is 2 + 3" in "".join(seen.texts) for seen in usual.seen), (
        "with weft's own prompts a run is asked first"
    )


def test_an_official_run_goes_on_with_a_judge_that_cannot_be_used(tmp_path: Path, serve: Serve, checkout: Path):
    data, server = write_weave(tmp_path / "data", more_records(4)), serve(answer=nonsense)
    run = evaluate(data, tmp_path / "home", server, prompts=f"official:{checkout}", official=True)
    assert run.record.state == "finished" and len(run.verdicts) > 40 and all(one.value is None for one in run.verdicts)
    assert all(row.cells["Avg"].value is None for row in run.table().run_rows), "no error becomes a number, in no row"
    with pytest.raises((UnusableJudge, EndpointDown)):
        evaluate(data, tmp_path / "own", server, preflight=False)


def test_the_harness_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    """It is run by hand beside a checkout; here its modules and what they take from weft must be there."""
    root = Path(__file__).parent.parent
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    for name in ("weave", "imug", "rover", "planviz", "opening"):
        module = __import__(f"conformance.{name}", fromlist=["compare"])
        assert callable(module.compare) and module.FILES
