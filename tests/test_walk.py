"""How far a reader walks to follow one turn through the code. bench/walk.py shows the walk, step by step."""

import runpy
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parent.parent / "bench" / "walk.py"))
FILES, RETURNS = 35, 60  # of one turn
WHOLE = 185  # returns of a whole run: opening it, one turn, and its report


def test_one_turn_can_be_followed():
    walks = SCRIPT["walks"](SCRIPT["run_and_report"]())
    told = "; ".join(f"{name}: {walk}" for name, walk in walks.items())
    assert walks["one turn"].files <= FILES and walks["one turn"].returns <= RETURNS, told
    assert walks["opening a run"].returns <= RETURNS + 5 and walks["its report"].returns <= RETURNS, told
    assert walks["all of it"].returns <= WHOLE, told
