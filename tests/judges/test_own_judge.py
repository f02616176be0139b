"""A judge in Python: the page's example scores images by pixels, and what it raises stays unscored."""

import re
from pathlib import Path
from typing import Any

from PIL import Image

import weft
from weft_tabletop.make import make

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-judge.md"


def paint_black(messages: Any, want: str) -> Any:
    return Image.new("RGB", (64, 64), "black") if want == "image" else "yes"


def test_the_example_of_the_page_scores_images_that_have_a_reference(tmp_path: Path):
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    (tmp_path / "judges.py").write_text(code)
    make("tabletop-weave", tmp_path / "data", samples=2, seed=5)
    judge = f"{tmp_path / 'judges.py'}:same_image"
    options: dict[str, Any] = {"data": tmp_path / "data", "judge": judge, "home": tmp_path / "home"}
    exact = weft.evaluate("weave", model="tabletop/oracle", **options)
    black = weft.evaluate("weave", model=paint_black, **options)
    right = [verdict.value or 0.0 for verdict in exact.verdicts if verdict.metric == "key_point"]
    wrong = [verdict.value or 0.0 for verdict in black.verdicts if verdict.metric == "key_point"]
    assert min(right) >= 0.9
    assert min(wrong) < 0.5
    without_reference = [verdict for verdict in exact.verdicts if verdict.metric == "image_quality"]
    assert all(verdict.value is None and "no reference image" in verdict.reason for verdict in without_reference)
