"""The tutorial's commands and code, as they stand on the page, from an empty folder to the last table."""

import os
import re
import subprocess
import sys
from pathlib import Path

from waiting import HANGS

PAGE = Path(__file__).parents[2] / "docs" / "get-started" / "two-checkpoints.md"


def test_two_checkpoints_with_three_seeds_are_one_table(tmp_path: Path):
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    commands = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mine.py").write_text(code)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("WEFT_HOME", None)
    outputs: list[str] = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        outputs.append(done.stdout)
    report = outputs[2]
    assert "checkpoint step-1000" in report and "checkpoint step-2000" in report, report
    assert "±" in report and "3 seeds" in report, report
    assert "where they differ most" in outputs[3], outputs[3]
