"""A small WeaverBench of our own: prompts of every kind, a model that answers as its prompt says, and a judge that says
what it is told."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import weft
from server import Provider, Seen, data_url, drawn
from weft.calls.caller import RetryPolicy


def prompt(
    name: str, text: str, required: int | None = None, category: str = "Daily Life", **more: Any
) -> dict[str, Any]:
    return {"id": name, "category": category, "input": [{"text": text}], "required_images": required, **more}


def written(folder: Path, records: list[Any], pictures: Mapping[str, bytes] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weaverbench.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name, data in (pictures or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def answered(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def picture(seed: str, size: int = 48) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(drawn(seed, size))}}


def playing(
    score: Callable[[Seen, str], Any] = lambda seen, name: 8,
    collage: Callable[[Seen, int], bool] = lambda seen, at: False,
) -> Any:
    """A model that draws as many pictures as its prompt has words `picture`, and a judge: a score for each name, and
    which are collages."""

    def reply(seen: Seen) -> dict[str, Any]:
        if not seen.is_judge:
            asked = seen.texts[-1]
            who = seen.body["model"]
            content: list[dict[str, Any]] = [
                {"type": "text", "text": f"About {asked}, {hashlib.sha256(who.encode()).hexdigest()[:6]}"}
            ]
            for at in range(asked.count("picture")):
                content += [picture(f"{who} {asked} {at}"), {"type": "text", "text": f"That was {at}."}]
            return answered([] if "silence" in asked else content)
        keys: dict[str, Any] = seen.body["response_format"]["json_schema"]["schema"]["properties"]
        if "pictures" in keys:
            count = keys["pictures"]["minItems"]
            found: Any = {
                "pictures": [{"picture": at, "seen": "x", "one_picture": not collage(seen, at)} for at in range(count)]
            }
        else:
            names = keys["scores"]["properties"]
            found = {"scores": {name: {"Justification": f"why {name}", "Score": score(seen, name)} for name in names}}
        return {"role": "assistant", "content": json.dumps(found)}

    return reply


def evaluate(provider: Provider, data: Path, home: Path, **options: Any) -> weft.Run:
    model, judge = (f"openai-chat/{name}@{provider.url}" for name in ("model", "judge"))
    quick = RetryPolicy(tries=2, base=0.01)
    return weft.evaluate(
        "weaverbench", **{"data": data, "home": home, "model": model, "judge": judge, "retry_policy": quick, **options}
    )


def values(run: weft.Run) -> dict[tuple[str, str], float | None]:
    return {(verdict.sample, verdict.metric): verdict.value for verdict in run.verdicts}
