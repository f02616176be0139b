"""Strategies on a real socket: what is asked, what enters the history, and what it costs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, data_url, drawn, judge_answer, model_answer
from waiting import until_in_loop
from weft.calls.caller import RetryPolicy
from weft.errors import UserError
from weft.store.journal import Journal
from weft_tabletop.make import make

Serve = Callable[..., Provider]


def evaluate(toy: Path, home: Path, provider: Provider, strategy: str, **options: Any) -> weft.Run:
    ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}
    patience = RetryPolicy(tries=2, base=0.001, cap=0.002)
    return weft.evaluate(
        "weave",
        data=toy,
        home=home,
        retry_policy=patience,
        strategy=strategy,
        where={"domain": "chess_game"},
        **ends,
        **options,
    )


def said(seen: Seen) -> str:
    return " ".join(seen.texts)


def painter(text: Callable[[Seen], str]) -> Callable[[Seen], dict[str, Any]]:
    """Pictures that differ at every call, and words by what is asked."""
    count = iter(range(10_000))

    def answer(seen: Seen) -> dict[str, Any]:
        if seen.is_judge:
            return judge_answer(seen)
        if "modalities" in seen.body:
            url = data_url(drawn(f"picture {next(count)}"))
            return {"role": "assistant", "content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}
        return {"role": "assistant", "content": text(seen)}

    return answer


def test_chain_of_thought_plans_first_and_keeps_the_plan_out_of_the_history(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=painter(lambda seen: "PLAN-OF-MINE" if "Do not draw yet" in said(seen) else "Image #1."))
    run = evaluate(toy, tmp_path / "home", provider, "cot", history="dialogue")
    asked = [seen for seen in provider.seen if not seen.is_judge]
    assert (
        sum("Do not draw yet" in said(seen) for seen in asked) == 2
        and sum("by this plan:\nPLAN-OF-MINE" in said(seen) for seen in asked) == 2
    )
    last = next(seen for seen in asked if "came first" in said(seen))
    assert "PLAN" not in said(last)
    assert [len(turn.reply.keys) for turn in run.turns] == [2, 2, 1]
    assert "strategy cot: 5 model calls for 3 replies" in run.report()


def test_self_verification_redraws_after_its_own_objection_and_only_the_last_picture_counts(
    toy: Path, tmp_path: Path, serve: Serve
):
    reviews = iter(["NO, the board is crooked.", "YES", "Yes, fine."])
    provider = serve(
        answer=painter(lambda seen: next(reviews) if "Begin with YES or NO" in said(seen) else "Image #1.")
    )
    run = evaluate(toy, tmp_path / "home", provider, "self-verify:2")
    asked = [seen for seen in provider.seen if not seen.is_judge]
    redrawn = [seen for seen in asked if "A review of it says: NO, the board is crooked." in said(seen)]
    assert len(redrawn) == 1 and len(run.turns[0].reply.keys) == 4 and len(run.turns[1].reply.keys) == 2
    final = run.turns[0].reply.images[-1].digest
    shown = next(seen for seen in asked if "Move a pawn" in said(seen) and "modalities" in seen.body)
    assert shown.pictures == [f"sha256:{final}"], "only the last picture enters the history"


def test_self_verification_ends_at_its_limit(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(
        answer=painter(lambda seen: "no, still wrong" if "Begin with YES or NO" in said(seen) else "Image #1.")
    )
    evaluate(toy, tmp_path / "home", provider, "self-verify:1")
    reviews = [seen for seen in provider.seen if "Begin with YES or NO" in said(seen)]
    assert len(reviews) == 2, "one review and one redraw for each of the two pictures"


def test_best_of_draws_at_once_and_the_model_picks(toy: Path, tmp_path: Path, serve: Serve):
    async def fault(seen: Any, times: int, request: Any) -> None:
        if "modalities" in seen.body:
            await until_in_loop("three candidates at once", lambda: provider.most_in_flight >= 3)

    provider = serve(
        answer=painter(lambda seen: "Candidate 3" if "Which candidate" in said(seen) else "Image #1."), fault=fault
    )
    run = evaluate(toy, tmp_path / "home", provider, "best-of:3")
    picked = [seen for seen in provider.seen if "Which candidate" in said(seen)]
    assert len(picked) == 2 and provider.most_in_flight >= 3
    assert f"sha256:{run.turns[0].reply.images[-1].digest}" == picked[0].pictures[-1]
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    assert len(run.turns[0].reply.keys) == 4 and all(
        journal.find_reply(key, run.id, 1) for key in run.turns[0].reply.keys
    )
    assert run.turns[0].reply.usage.tokens_in == 400


def test_equal_candidates_need_no_pick_and_are_told(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=lambda seen: judge_answer(seen) if seen.is_judge else model_answer(seen))
    run = evaluate(toy, tmp_path / "home", provider, "best-of:4")
    assert not any("Which candidate" in said(seen) for seen in provider.seen)
    assert "WARNING: in 2 turns all candidates were identical" in "\n".join(run.summary().lines)
    assert run.turns[0].reply.reason == "all 4 candidates are the same"
    assert run.turns[0].reply.usage.tokens_in == 400, "each of the four calls is counted once"


def test_each_candidate_has_a_seed_of_its_own_where_there_is_one(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=painter(lambda seen: "1" if "Which candidate" in said(seen) else "Image #1."))
    run = evaluate(toy, tmp_path / "home", provider, "best-of:3", model_options={"seed": 5})
    first = [
        seen.body["seed"] for seen in provider.seen if "modalities" in seen.body and "Draw a chess board" in said(seen)
    ]
    assert sorted(first) == [5, 6, 7] and "WARNING" not in "\n".join(run.summary().lines)


@pytest.mark.parametrize("strategy", ["cot", "self-verify:1", "best-of:2"])
def test_plans_reviews_and_picks_are_not_bound_by_the_benchmarks_system_prompt(
    tmp_path: Path, serve: Serve, strategy: str
):
    """It may ask for letters alone, and a review would come back as one."""
    record = {"sample_id": "1", "domain": "Cooking", "subdomain": "cooking_workflow", "system_prompt": "Letters only."}
    record["tasks"] = [
        {"turn": 1, "modality": "image", "input": [{"text": "Draw a pan."}], "output": {"evaluation_points": ["a pan"]}}
    ]
    (tmp_path / "data" / "images").mkdir(parents=True)
    (tmp_path / "data" / "benchmark.jsonl").write_text(json.dumps(record))
    provider = serve(answer=painter(lambda seen: "NO: it is crooked; make it straight"))
    model = f"openai-chat/model@{provider.url}"
    weft.evaluate(
        "imug", data=tmp_path / "data", model=model, judge="constant/3", home=tmp_path / "home", strategy=strategy
    )
    own = [seen for seen in provider.seen if "modalities" not in seen.body]
    drawn_ = [seen for seen in provider.seen if "modalities" in seen.body]
    assert own and not any("Letters only" in said(seen) for seen in own)
    assert all("Letters only" in said(seen) for seen in drawn_)
    if strategy == "self-verify:1":
        assert "how it should be improved" in said(own[0]) and "make it straight" in said(drawn_[-1])


def test_a_strategy_is_another_run_and_resumes_like_any(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=painter(lambda seen: "1" if "Which candidate" in said(seen) else "Image #1."))
    plain = evaluate(toy, tmp_path / "home", provider, "none")
    best = evaluate(toy, tmp_path / "home", provider, "best-of:2")
    assert plain.id != best.id and "best-of:2" in best.name
    calls = provider.count
    again = evaluate(toy, tmp_path / "home", provider, "best-of:2")
    assert provider.count == calls and again.report("csv") == best.report("csv")


@pytest.mark.parametrize("name", ["think", "best-of", "best-of:1", "self-verify:x", "cot:3"])
def test_a_strategy_that_is_none_is_told(toy: Path, tmp_path: Path, serve: Serve, name: str):
    with pytest.raises(UserError):
        evaluate(toy, tmp_path / "home", serve(), name)


def test_the_calls_of_a_strategy_are_kept_even_where_they_cost_nothing(tmp_path: Path):
    data = make("tabletop-imug", tmp_path / "data", samples=12, seed=0)
    job = {
        "data": data,
        "model": "tabletop/oracle",
        "judge": "tabletop/exact",
        "home": tmp_path / "home",
        "model_options": {"error": 0.3},
    }
    for name, least in (("cot", 1.3), ("self-verify:2", 1.5), ("best-of:2", 1.9)):
        run = weft.evaluate("imug", strategy=name, **job)
        drawn = [turn.reply for turn in run.turns if turn.modality == "image"]
        assert sum(len(reply.keys) for reply in drawn) / len(drawn) > least and {
            turn.reply.outcome for turn in run.turns
        } == {"answered"}
        journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
        assert all(len(journal.calls(reply.keys)) == len(reply.keys) for reply in drawn)
    alone, verified = (weft.evaluate("imug", strategy=name, **job) for name in ("none", "self-verify:2"))
    score = [sum(v.value or 0 for v in run.verdicts if v.metric == "points") for run in (alone, verified)]
    assert score[1] > score[0], "an oracle that checks itself errs less"


def test_a_review_that_says_nothing_is_no_objection(toy: Path, tmp_path: Path, serve: Serve):
    asked: list[str] = []

    def answer(seen: Any) -> dict[str, Any]:
        if seen.is_judge:
            return {"role": "assistant", "content": '{"reasoning": "", "score": 5}'}
        asked.append(" ".join(seen.texts))
        return (
            model_answer(seen)
            if "modalities" in seen.body
            else {"role": "assistant", "content": None, "refusal": "I will not say"}
        )

    evaluate(toy, tmp_path / "home", serve(answer=answer), "self-verify:2")
    assert not any("Draw it again" in text for text in asked)


@pytest.mark.parametrize("name", ["cot", "self-verify:1", "best-of:2"])
def test_pictures_that_cannot_be_fitted_cost_their_turn_not_the_run(tmp_path: Path, name: str):
    import io

    from PIL import Image as Pil

    from toy import toy_records, write_weave

    folder = write_weave(tmp_path / "odd", [record for record in toy_records() if record["domain"] == "fusion"])
    for number, size in ((1, (4000, 1)), (3, (1, 4000))):
        out = io.BytesIO()
        Pil.new("RGB", size).save(out, "PNG")
        (folder / "test" / "imgs" / f"mix_{number}.png").write_bytes(out.getvalue())
    job = {"data": folder, "model": "copy", "judge": "constant/1", "home": tmp_path / "home"}

    def model(messages: Any, want: str) -> Any:
        return Pil.new("RGB", (8, 8)) if want == "image" else "yes"

    job["model"] = model
    run = weft.evaluate("weave", strategy=name, model_options={"images": "strip"}, **job)
    assert (
        run.turns[0].reply.outcome == "failed"
        and "strip of" in run.turns[0].reply.reason
        and run.record.state == "finished"
    )


def test_the_calls_of_a_strategy_are_on_the_report_page(toy: Path, tmp_path: Path, serve: Serve):
    from weft.api import write_report

    provider = serve(answer=painter(lambda seen: "2" if "Candidate 1" in said(seen) else "Image #1."))
    run = evaluate(toy, tmp_path / "home", provider, "best-of:2", history="dialogue")
    page = write_report([run], tmp_path / "report", home=tmp_path / "home")
    shown = (page.parent / "d" / "0.html").read_text()
    assert shown.count("3 calls for this reply") == 2, (
        "two pictures and the choice between them, for each picture that was due"
    )
    assert shown.count(": image") == 4 and shown.count(": text") == 2 and shown.count(", chosen") == 2
    assert "Which candidate does best what was asked?" in shown, "and what it was asked"
    assert "best-of:2: 7 model calls for 3 replies" in page.read_text()
