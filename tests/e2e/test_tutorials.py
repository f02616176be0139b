"""The tutorials' commands and code, as they stand on their pages, from an empty folder to the last table."""

import os
import re
import subprocess
import sys
from pathlib import Path

from waiting import HANGS

PAGES = Path(__file__).parents[2] / "docs" / "get-started"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)


def run_commands(page: str, folder: Path) -> list[str]:
    """Run each block of commands of the page; return what each printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("WEFT_HOME", None)
    outputs: list[str] = []
    for command in blocks(page, "bash"):
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS
        )
        assert done.returncode == 0, (command, done.stderr)
        outputs.append(done.stdout)
    return outputs


def test_two_checkpoints_with_three_seeds_are_one_table(tmp_path: Path):
    (code,) = blocks("two-checkpoints.md", "python")
    (tmp_path / "mine.py").write_text(code)
    outputs = run_commands("two-checkpoints.md", tmp_path)
    report = outputs[2]
    assert "checkpoint step-1000" in report and "checkpoint step-2000" in report, report
    assert "±" in report and "3 seeds" in report, report
    assert "where they differ most" in outputs[3], outputs[3]


def test_a_multi_turn_benchmark_of_ones_own(tmp_path: Path):
    page = "multi-turn-benchmark.md"
    (data,) = blocks(page, "json")
    benchmark, model = blocks(page, "python")
    (tmp_path / "DATA").mkdir()
    (tmp_path / "DATA" / "stories.json").write_text(data)
    (tmp_path / "stories.py").write_text(benchmark)
    (tmp_path / "painter.py").write_text(model)
    (output,) = run_commands(page, tmp_path)
    assert "6 verdicts, all complete" in output and "boat, turn 2 (image)" in output
    assert "| 0.750 [0.000, 1.000] | 0.750 [0.000, 1.000] |" in output, output
