"""A whole run through every wire while a third of all requests meets trouble: the table of a run without, and a ledger
of what happened.

    python bench/chaos.py [--share 0.3] [--samples 18]

For each way to a model that draws: WEAVEBench's protocol on the tabletop, judged through OpenAI's chat, once
undisturbed and once with faults of all kinds (statuses, resets, cut and half bodies, pages of HTML, nothing, errors in
a 200, hangs beyond the time-out). Then counted, from the journal and from the servers: is anything lost (a turn or a
verdict that is not there), doubled (an answer that was kept twice), or invented (a picture that no server drew, a
verdict without a call)? The exit code is 1 if so, or if a table differs."""

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import json
import random
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import weft  # noqa: E402
from fakes import BFL, FAKES, DashScope, OpenAI  # noqa: E402
from fuzz.mock import filled  # noqa: E402
from trouble import KINDS, Chaos  # noqa: E402
from weft.calls.caller import RetryPolicy  # noqa: E402
from weft_tabletop.make import make  # noqa: E402

PATIENCE = RetryPolicy(tries=12, rate_limit_tries=12, empty_tries=3, base=0.01, cap=0.05)
DRAWING = [name for name, kind in FAKES.items() if kind.pictures_out]
TIMEOUT = "1"


class Judge(OpenAI):
    """Its verdicts follow from what it is asked."""

    def message(self, asked):
        digest = hashlib.sha256("".join(asked.flow).encode()).hexdigest()
        return {"role": "assistant", "content": json.dumps(filled(asked.schema, random.Random(digest)))}, "stop"


class Stage:
    """Fakes in a thread with a loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._open = contextlib.AsyncExitStack()

    def put(self, fake, chaos: Chaos):
        fake.middlewares = [chaos.middleware]
        return asyncio.run_coroutine_threadsafe(self._open.enter_async_context(fake.up()), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._open.aclose(), self._loop).result(30)


def measured(name: str, data: Path, home: Path, share: float, seed: int) -> dict:
    stage, model_chaos, judge_chaos = Stage(), Chaos(share, seed), Chaos(share, seed + 1)
    model, judge = stage.put(FAKES[name](), model_chaos), stage.put(Judge(), judge_chaos)
    if isinstance(model, (BFL, DashScope)):
        importlib.import_module("weft.models.providers.bfl").Flux.poll = importlib.import_module(
            "weft.models.endpoint"
        ).TaskEndpoint.poll = 0.02
    began = time.monotonic()
    run = weft.evaluate(
        "weave",
        data=data,
        model=model.name,
        judge=judge.name,
        home=home,
        retry_policy=PATIENCE,
        model_options={"timeout": TIMEOUT},
        judge_options={"timeout": TIMEOUT},
    )
    seconds = time.monotonic() - began
    stage.close()
    drawn = {hashlib.sha256(asked.drawing).hexdigest() for asked in model.seen}
    told = re.sub(r"127\.0\.0\.1:\d+", "", run.report("csv"))
    table = [",".join(line.split(",")[2:]) for line in told.splitlines()]
    return {
        "run": run,
        "drawn": drawn,
        "table": table,
        "chaos": (model_chaos, judge_chaos),
        "seconds": seconds,
        "home": home,
    }


def found_wrong(found: dict) -> list[str]:
    """What is lost, doubled or invented."""
    run, made = found["run"], []
    due = run.record.expected.turns if run.record.expected else 0
    if len(run.turns) != due or run.record.state != "finished":
        made.append(f"lost: {due - len(run.turns)} turns")
    lost = [verdict for verdict in run.verdicts if verdict.value is None]
    made += [f"lost: {len(lost)} verdicts, such as: {lost[0].reason}"] if lost else []
    rows = sqlite3.connect(found["home"] / "journal.sqlite").execute("SELECT key, outcome FROM calls").fetchall()
    twice = [key for key, count in Counter(key for key, outcome in rows if outcome != "failed").items() if count > 1]
    made += [f"doubled: {len(twice)} answers"] if twice else []
    pictures = {image.digest for turn in run.turns for image in turn.reply.images}
    made += [f"invented: {len(pictures - found['drawn'])} pictures"] if pictures - found["drawn"] else []
    keys = {key for key, _ in rows}
    bare = [one for one in run.verdicts if one.by == "judge" and not (one.keys and set(one.keys) <= keys)]
    made += [f"invented: {len(bare)} verdicts without a call"] if bare else []
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--samples", type=int, default=18)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    wrong: list[str] = []
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    calls = requests = retries = verdicts = 0
    with tempfile.TemporaryDirectory() as scratch:
        data = make("tabletop-weave", Path(scratch) / "data", samples=chosen.samples, seed=chosen.seed)
        print(
            f"{'wire':<18}{'calls':>7}{'requests':>10}{'faults':>8}{'retries':>9}{'verdicts':>10}{'seconds':>9}  same "
            "table"
        )
        for name in DRAWING:
            quiet, loud = (
                measured(name, data, Path(scratch) / f"{name}-{share}", share, chosen.seed)
                for share in (0.0, chosen.share)
            )
            troubled = found_wrong(quiet) + found_wrong(loud)
            same = quiet["table"] == loud["table"]
            wrong += [f"{name}: {one}" for one in troubled] + ([] if same else [f"{name}: the tables differ"])
            rows = (
                sqlite3.connect(loud["home"] / "journal.sqlite")
                .execute("SELECT outcome, attempts FROM calls")
                .fetchall()
            )
            met = sum((one.faults for one in loud["chaos"]), Counter())
            asked = sum(one.requests for one in loud["chaos"])
            tried = sum(attempts - 1 for _, attempts in rows)
            print(
                f"{name:<18}{len(rows):>7}{asked:>10}{sum(met.values()):>8}{tried:>9}{len(loud['run'].verdicts):>10}{loud['seconds']:>9.1f}"
                f"  {'yes' if same else 'NO'}",
                flush=True,
            )
            faults += met
            outcomes += Counter(outcome for outcome, _ in rows)
            calls, requests, retries = calls + len(rows), requests + asked, retries + tried
            verdicts += len(loud["run"].verdicts)
    print(
        f"\ncalls {calls}, requests {requests}, faults {sum(faults.values())}, retries {retries}, verdicts {verdicts}"
    )
    print("faults by kind: " + ", ".join(f"{kind} {faults[kind]}" for kind in KINDS))
    print("outcomes: " + ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common()))
    print(
        "\n".join(["trouble:", *wrong])
        if wrong
        else "nothing lost, nothing doubled, nothing invented; every table as without faults"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
