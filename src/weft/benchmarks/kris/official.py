"""KRIS-Bench's released arithmetic: every score counts alike, 25 (s - 1), over those that there are.

An image that is missing is skipped, and so is a reply without a score. The authors' repository has no summary; this is
the one that BAGEL's authors published with their rows. Scores are shares.
"""

from collections.abc import Mapping
from pathlib import Path

from weft.benchmarks.kris import official_reading
from weft.benchmarks.kris.data import KrisGold
from weft.benchmarks.official import NO_MODEL_OUTPUT, MissingScore, Official
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.judges.official_prompts import PromptFunction, read_constants
from weft.types import OfficialReading, Question, Verdict

PROMPTS_FILE = "utils/prompts.py"
PROMPTS = {
    "consistency": "prompt_consist",
    "consistency multi": "prompt_consist_multi",
    "consistency temporal": "prompt_consist_temporal",
    "quality": "prompt_quality",
    "instruction": "prompt_instruction_following",
    "instruction view": "prompt_view_instruction_following",
    "instruction multi": "prompt_instruction_multi",
    "instruction temporal": "prompt_instruction_temporal",
    "instruction knowledge": "prompt_dual_evaluation",
}
SCRIPTS = {
    "common": "metrics_common.py",
    "knowledge": "metrics_knowledge.py",
    "view": "metrics_view_change.py",
    "multi": "metrics_multi_element.py",
    "temporal": "metrics_temporal_prediction.py",
}
MULTI_FUNCTION = "evaluate_multi_element_with_gpt"
TEMPORAL_FUNCTION = "evaluate_temporal_with_gpt"
LABELS = ("source", "made", "reference")  # of one script's images, in its order


class KrisOfficial(Official):
    """KRIS-Bench's arithmetic."""

    prompts_file = PROMPTS_FILE
    prompts = PROMPTS
    settings = {"max_tokens": 1000}
    published_judge = "gpt-4o"
    published_samples = 1267
    samples_are = "edits"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        if not question.text_only:
            return {}
        gold: KrisGold = question.gold
        found = official_reading.read_scores(gold.script, question.metrics, text)
        return {name: OfficialReading(None if score is None else (score - 1) / 4) for name, score in found.items()}

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        return super().find_reading(verdict)


OFFICIAL = KrisOfficial()


def read_official_rubrics(checkout: Path) -> Rubrics:
    """Return the released prompts, and the texts before images by script.

    Raises UserError if the checkout lacks one.
    """
    constants = read_constants(checkout, PROMPTS_FILE, PROMPTS.values())
    texts = {name: constants[constant] for name, constant in PROMPTS.items()}
    for script, file in SCRIPTS.items():
        labels = PromptFunction.read(checkout, file, "evaluate_with_gpt").list_part_texts()
        names = ("made",) if script in ("multi", "temporal") else LABELS
        texts |= {f"label {script} {name}": label for name, label in zip(names, labels, strict=False)}
    multi = PromptFunction.read(checkout, SCRIPTS["multi"], MULTI_FUNCTION)
    texts["label composed source"] = multi.find_template({"idx": "number"})
    texts["label composed made"] = multi.list_part_texts()[0]
    frames = PromptFunction.read(checkout, SCRIPTS["temporal"], TEMPORAL_FUNCTION)
    texts["label frame"] = frames.find_template({"frame_num": "number", "frame_type": "kind"})
    return build_rubrics(texts, f"official {PROMPTS_FILE}")
