"""ImgEdit-Bench's released arithmetic: the average of the scores in a reply, means of edits by type, each rounded to
two decimals. A missing image, or a call that failed, ends the summary. Scores are shares of five."""

from collections.abc import Mapping
from pathlib import Path

from weft.benchmarks.imgedit import official_reading
from weft.benchmarks.imgedit.data import TYPES, UGE
from weft.benchmarks.official import UNSCORED, MissingScore, Official
from weft.benchmarks.prompts import Rubrics, build_rubrics, read_own_rubrics
from weft.errors import UserError
from weft.judges.official_prompts import read_constants
from weft.types import OfficialReading, Question, Verdict
from weft.untrusted import dict_or_empty, read_json_file

PROMPTS_FILE = "Benchmark/Basic/prompts.json"
UGE_FILE = "Benchmark/UGE/UGE_bench.py"
DIALOGUE_RUBRICS = ("edit", "type_dialogue")  # ours: the authors have no prompt for dialogues
RELEASED_DIGITS = 2
STOPS = "stops"  # the text of a reading at which the summary stops


class ImgEditOfficial(Official):
    """ImgEdit-Bench's arithmetic."""

    prompts_file = PROMPTS_FILE
    published_judge = "gpt-4o"
    published_samples = 737
    samples_are = "edits of the basic suite"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read a reply. The scripts never ask again, and keep one number of a reply: all metrics have it."""
        if not question.text_only:
            return {}
        try:
            average = official_reading.read_average(text)
        except ValueError:
            return dict.fromkeys(question.metrics, OfficialReading(text=STOPS))
        score = None if average is None else average / official_reading.MAX_SCORE
        return dict.fromkeys(question.metrics, OfficialReading(score))

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return UNSCORED
        return super().find_reading(verdict)


OFFICIAL = ImgEditOfficial()


def read_official_rubrics(checkout: Path) -> Rubrics:
    """Return the released prompts by type, and that of UGE. Raises UserError if the checkout lacks them."""
    path = checkout / PROMPTS_FILE
    if not path.is_file():
        raise UserError(
            f"--prompts official:{checkout}: there is no {PROMPTS_FILE} in it; point it at a checkout of "
            "PKU-YuanGroup/ImgEdit"
        )
    prompts = dict_or_empty(read_json_file(path))
    texts: dict[str, str] = {}
    for name in TYPES:
        text = prompts.get(name)
        if not isinstance(text, str) or len(official_reading.find_names(text)) != 3:
            raise UserError(f"{path} has no prompt {name} that asks for three scores: is it another version?")
        texts[name] = text
    texts[UGE] = read_constants(checkout, UGE_FILE, ["prompt"])["prompt"]
    own = read_own_rubrics(Path(__file__).parent).texts
    texts |= {name: own[name] for name in DIALOGUE_RUBRICS}
    return build_rubrics(texts, f"official {PROMPTS_FILE}")
