"""A small PlanViz of our own: one task of each kind, pictures that only their names decide, and a judge that says what
it is told."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import weft
from server import Provider, Seen, data_url, drawn
from weft.benchmarks.planviz.files import TASK_LISTS
from weft.calls.caller import RetryPolicy

NAMES = {listed.name: listed for listed in TASK_LISTS}


def records() -> dict[str, list[dict[str, Any]]]:
    """By list. The points of a task say which they are."""
    made: dict[str, list[dict[str, Any]]] = {}
    for name, listed in NAMES.items():
        if name == "ui_gen_diff":
            continue
        record: dict[str, Any] = {
            "prompt": f"Plan {name}.",
            "correctness_key_points": [f"{name} point {at}" for at in (1, 2, 3)],
        }
        if listed.task == "edit":
            folder = Path(listed.file).parent
            record |= {"image_path": f"{folder}/imgs/0.png", "ref_image_path": f"{folder}/refs/0.png"}
        made[name] = [{**record, "ended": "open" if listed.subtask == "route" else "closed"}]
    return made


def written(folder: Path, lists: Mapping[str, list[Any]] | None = None) -> Path:
    """The lists as they are given, and every picture that they name."""
    for name, some in (lists if lists is not None else records()).items():
        file = folder / NAMES[name].file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(some))
        for record in some:
            for field in ("image_path", "ref_image_path"):
                path = folder / str(record.get(field, "")) if isinstance(record, dict) and record.get(field) else None
                if path is not None and ".." not in str(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(drawn(f"{name} {field} {record[field]}", 64))
    return folder


def write_checkout(folder: Path) -> Path:
    """A repository with prompts under the official names; the words are ours."""
    folder.mkdir()
    prompts = {
        "CORRECTNESS_EDITING": "correctness edit [{}|{}]",
        "CORRECTNESS_GENERATION": "correctness gen [{}|{}]",
        "VISUAL_EDIT": "visual edit",
        "VISUAL_GENERATION": "visual gen",
        "EFFICIENCY_GEN": "efficiency gen [{}]",
        "EFFICIENCY_EDIT": "efficiency edit [{}]",
    }
    (folder / "template.py").write_text("".join(f'TEMPLATE_{name} = """{text}"""\n' for name, text in prompts.items()))
    return folder


def metric_of(seen: Seen) -> str:
    """Which metric a judge is asked about, by the keys of its schema."""
    keys = seen.body["response_format"]["json_schema"]["schema"]["properties"]
    return "correctness" if "points" in keys else "efficiency" if "Efficiency" in keys else "visual"


def judged(
    met: Callable[[Seen], list[bool]] | None = None, *, visual: int = 4, efficiency: int = 3, **more: Any
) -> Callable[[Seen], dict[str, Any]]:
    """A model that draws, and a judge: which points are met, and what else is in its reply about them."""

    def reply(seen: Seen) -> dict[str, Any]:
        if not seen.is_judge:
            picture = {"type": "image_url", "image_url": {"url": data_url(drawn(seen.digest, 64))}}
            return {"role": "assistant", "content": "", "images": [picture]}
        keys: dict[str, Any] = seen.body["response_format"]["json_schema"]["schema"]["properties"]
        if "points" not in keys:
            said = {key: {"Efficiency": efficiency}.get(key, visual) for key in keys if key != "explanation"}
            return {"role": "assistant", "content": json.dumps({"explanation": "as seen", **said})}
        due = keys["points"]["minItems"]
        given = met(seen) if met else [True] * due
        points = [{"point": at, "evidence": f"seen {at}", "satisfied": one} for at, one in enumerate(given, start=1)]
        about = {"picture_is": "an answer", "unnecessary_steps": 0, **more}
        return {
            "role": "assistant",
            "content": json.dumps({**{key: about[key] for key in keys if key in about}, "points": points}),
        }

    return reply


def evaluate(folder: Path, home: Path, server: Provider, **options: Any) -> weft.Run:
    options.setdefault("model", f"openai-chat/model@{server.url}")
    options.setdefault("judge", f"openai-chat/judge@{server.url}")
    return weft.evaluate(
        "planviz", data=folder, home=home, retry_policy=RetryPolicy(tries=2, base=0.001, cap=0.002), **options
    )


def values(run: weft.Run) -> dict[tuple[str, str], float | None]:
    """By list and metric."""
    return {(one.sample.rpartition("-")[0], one.metric): one.value for one in run.verdicts}
