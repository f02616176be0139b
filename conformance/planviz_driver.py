"""Run by the interpreter that has what the released scripts need: calls them where they are, as they are.

judge SCRIPTS URL PATH TASK MODE      the judging script, with its client turned to URL; what it imports and never uses
is stubbed
score SCRIPTS PATH                    the scorer: its number, or what it stopped at
read SCRIPTS FILE OUT                 what the scorer comes to for each of some lists of one record
"""

import builtins
import io
import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any


def judge(scripts: str, url: str, path: str, task: str, mode: str) -> None:
    import openai

    for name in ("torch", "transformers", "pandas"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["transformers"].modeling_utils = None  # type: ignore[attr-defined]
    client = openai.OpenAI
    openai.OpenAI = lambda **_: client(api_key="k", base_url=url, max_retries=0)  # type: ignore[misc, assignment]
    sys.path.insert(0, scripts)
    sys.argv = ["judge", "--task", task, "--path", path, "--mode", mode]
    runpy.run_path(str(Path(scripts) / "qwen_eval_larger_api.py"), run_name="__main__")


def score(scripts: str, path: str) -> None:
    sys.argv = ["score", "--input_path", path]
    try:
        runpy.run_path(str(Path(scripts) / "score.py"), run_name="__main__")
    except ZeroDivisionError:
        print("nothing to divide by")


def read(scripts: str, file: str, out: str) -> None:
    code = compile((Path(scripts) / "score.py").read_text(), "score.py", "exec")
    records: list[Any] = json.loads(Path(file).read_text())
    said: list[str] = []
    sys.argv = ["score", "--input_path", "record"]
    whole = builtins.open
    for record in records:
        builtins.open = lambda *_, **__: io.StringIO(json.dumps([record]))  # type: ignore[assignment]  # noqa: B023
        heard = io.StringIO()
        sys.stdout = heard
        try:
            exec(code, {"__name__": "__main__"})
            said.append(heard.getvalue().strip())
        except ZeroDivisionError:
            said.append("none")
        finally:
            sys.stdout, builtins.open = sys.__stdout__, whole
    Path(out).write_text(json.dumps(said))


if __name__ == "__main__":
    {"judge": judge, "score": score, "read": read}[sys.argv[1]](*sys.argv[2:])
