"""What a judge is asked for its card: each benchmark's own questions, in its own schema, about answers whose faults are
known.

Every sitting is a run like any other (journalled, resumed, paid for once) in a home of its own, so that nobody's list
of runs is full of them. The truth is a run of the same answers under the exact judge. Beside the plain sittings, at
several sizes of pictures, a part of the questions is asked again (repeats), with a text in the picture or behind the
answer that asks for full marks and with one as long that does not, at length, and dressed up; and documents fight, each
pair in both orders."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.arena.stored_answers import StoredAnswers
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import Session, open_run
from weft.models import registry
from weft.models.config import read_config
from weft.workspace import open_blobs
from weft_tabletop.make import make
from weft_tabletop.make.enlarged import check_side

REFERENCE = "tabletop/exact"
FAULTY = "tabletop/faulty"
FOLDER = "judge-check"  # in a user's home
SIDES = (256, 512, 1024)
DRAWS = 3  # of a question that is asked again
PART = 4  # one question in so many is asked again, with a plea, at length, ...
FEWEST = 8  # answers in a sitting
# at this size and above there is a third of the answers
VAST = 1024
FEW = 1 / 3


class ExamPaper(Struct, frozen=True):
    """A benchmark in the exam: the data that are made for it, about how many questions an answer leads to, and whether
    its answers have words that are judged."""

    benchmark: str
    dataset: str
    questions: float
    words: bool = False
    options: Mapping[str, Any] = {}


PAPERS: Mapping[str, tuple[ExamPaper, ...]] = {
    "weave": (ExamPaper("weave", "tabletop-weave-single", 2.3, words=True),),
    "imug": (ExamPaper("imug", "tabletop-imug", 2.6),),
    "rover": (ExamPaper("rover-ig", "tabletop-rover", 5, words=True), ExamPaper("rover-tg", "tabletop-rover", 2)),
    "planviz": (ExamPaper("planviz", "tabletop-planviz", 3),),
    "weaver": (ExamPaper("weaverbench", "tabletop-weaver", 1.5, words=True),),
}
# for a judge that sees no pictures
IN_WORDS = ExamPaper("weave", "tabletop-weave-single", 0.3, words=True, options={"turns": "text"})
ROVER = {"rover-ig": 2 / 3, "rover-tg": 1 / 3}  # shares of a dataset's samples


class Sitting(Struct, frozen=True):
    """One run of the exam. `condition`: plain, truth, repeats, or what was done to the answers. A battle is between two
    sittings."""

    name: str
    paper: ExamPaper
    condition: str
    side: int
    job: RunConfig | None = None
    fight: tuple[str, str] = ("", "")


class Exam(Struct, frozen=True):
    judge: Any
    home: Path
    benchmarks: tuple[str, ...] = tuple(PAPERS)
    questions: int = 200
    sides: tuple[int, ...] = SIDES
    judge_options: Mapping[str, Any] = {}
    prompts: str = "weft"
    concurrency: int | None = None
    seed: int = 0
    probe: bool = False

    @property
    def place(self) -> Path:
        """Where its runs and data are."""
        return self.home / FOLDER

    def papers(self) -> list[ExamPaper]:
        """By the benchmarks that were named; for a judge that sees no pictures what can be asked in words."""
        unknown = [name for name in self.benchmarks if name not in PAPERS]
        if unknown:
            raise UserError(f"there is no exam about {unknown[0]!r}; there is one about {', '.join(PAPERS)}")
        if self.sees():
            return [paper for name in dict.fromkeys(self.benchmarks) for paper in PAPERS[name]]
        if "weave" not in self.benchmarks:
            raise UserError(
                "this judge sees no pictures, and only weave has questions about words alone: name it in --benchmarks"
            )
        return [IN_WORDS]

    def sees(self) -> bool:
        """Whether the judge is shown pictures at all."""
        if isinstance(self.judge, str) and self.judge.startswith("tabletop/"):
            return True  # it needs the data that are still to be made
        return (
            registry.resolve_endpoint(
                self.judge, open_blobs(self.place), self.judge_options, read_config(), ""
            ).takes.images
            != "none"
        )

    def sittings(self) -> list[Sitting]:
        if self.questions < 1 or not self.sides:
            raise UserError("give at least one question and one size of pictures")
        for side in self.sides:
            check_side(side)
        return [sitting for paper in self.papers() for sitting in self._of(paper)]

    def _of(self, paper: ExamPaper) -> list[Sitting]:
        in_words = bool(paper.options)
        if in_words:
            sides = self.sides[:1]
        else:
            sides = self.sides
        made: list[Sitting] = []
        for side in sides:
            count = self._samples(paper, side, sides)
            made += [
                self._sitting(paper, "truth", side, count, judge=REFERENCE),
                self._sitting(paper, "plain", side, count),
            ]
        # what is asked again is asked at a middling size
        side = max((one for one in sides if one < VAST), default=sides[-1])
        count = self._samples(paper, side, sides)
        some = min(count, max(FEWEST * (4 if in_words else 1), math.ceil(self.questions / paper.questions / PART)))
        made.append(self._sitting(paper, "repeats", side, count, limit=some, judge_repeats=DRAWS))
        ways = [] if in_words else [("stamp", "neutral"), ("stamp", "obey")]
        ways += [("says", how) for how in ("neutral", "obey", "long", "markdown")] if paper.words else []
        # questions about pictures stay as they are where words change, and are not paid for again
        for what, how in ways:
            if what == "says" and paper.benchmark == "weave":
                of = count
            else:
                of = some
            made.append(self._sitting(paper, f"{what} {how}", side, count, limit=of, model={what: how}))
        if paper.benchmark == "weaverbench":
            other = self._sitting(paper, "other answers", side, count, judge=REFERENCE, model={"seed": self.seed + 1})
            both = (f"{paper.benchmark} {side} truth", other.name)
            fights = [(f"{paper.benchmark} battles {who}", f"battles {who}") for who in ("truth", "plain")]
            made += [other, *(Sitting(name, paper, condition, side, None, both) for name, condition in fights)]
        return made

    def _samples(self, paper: ExamPaper, side: int, sides: Sequence[int]) -> int:
        """Answers at this size; of vast pictures there are fewer, since each takes as long as sixteen."""
        shares = {one: 1.0 if one < VAST or len(sides) == 1 else FEW for one in sides}
        return max(FEWEST, math.ceil(self.questions / paper.questions * shares[side] / sum(shares.values())))

    def _sitting(
        self, paper: ExamPaper, condition: str, side: int, count: int, *, judge: str = "", **more: Any
    ) -> Sitting:
        options: dict[str, Any] = {"seed": self.seed, "side": side}
        options.update(more.pop("model", {}))
        data = self.data(paper, side, count)
        job = RunConfig(
            benchmark=paper.benchmark,
            data=data,
            model=FAULTY,
            judge=judge or self.judge,
            options=paper.options,
            home=self.place,
            prompts=self.prompts,
            model_options=options,
            judge_options={} if judge else self.judge_options,
            concurrency=self.concurrency,
            probe=self.probe and not judge,
            **more,
        )
        return Sitting(f"{paper.benchmark} {side} {condition}", paper, condition, side, job)

    def data(self, paper: ExamPaper, side: int, count: int) -> Path:
        if paper.benchmark in ROVER:
            whole = math.ceil(count / ROVER.get(paper.benchmark, 1.0) / 6) * 6
        else:
            whole = count
        return self.place / "data" / f"{paper.dataset}-{side}-{whole}-{self.seed}"

    def prepare(self, sitting: Sitting) -> None:
        """Its data, if they are not there yet."""
        if sitting.job is None:
            return
        data = Path(sitting.job.data)
        if not data.is_dir():
            data.parent.mkdir(parents=True, exist_ok=True)
            _, side, count, seed = data.name.rsplit("-", 3)
            make(sitting.paper.dataset, data, samples=int(count), seed=int(seed) + int(side), side=int(side))

    def opened(
        self, sitting: Sitting, runs: Mapping[str, str], budget: float | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """The session of a sitting; `runs` are the ids of those before it, by name."""
        if sitting.job is not None:
            return open_run(replace(sitting.job, budget=budget))
        truth = sitting.condition.endswith("truth")
        config = RunConfig(
            judge=REFERENCE if truth else self.judge,
            options={"both_orders": True},
            home=self.place,
            prompts=self.prompts,
            judge_options={} if truth else self.judge_options,
            concurrency=self.concurrency,
            budget=budget,
            probe=False,
        )
        return open_run(config, StoredAnswers(tuple(runs[name] for name in sitting.fight)))


def judged_sittings(sittings: Sequence[Sitting]) -> list[Sitting]:
    """Those in which the judge itself is asked."""
    return [one for one in sittings if one.condition not in ("truth", "other answers", "battles truth")]
