"""The runs behind a calibration card: each benchmark's own questions, in its own schema, about answers whose faults are
known.

Every sitting is a normal run (journalled, resumable, paid for once) in a home of its own, so that it is not listed
among the user's runs. The reference is a run of the same answers under the exact judge. Besides the plain sittings, at
several image sizes, a part of the questions is asked

    - again (repeats),
    - with a line in the image or after the answer that asks for full marks, and with one as long that does not,
    - with the answer padded, and with the answer in Markdown,
    - as battles between documents, each pair in both orders."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.arena.stored_answers import StoredAnswers
from weft.calls.budget import Budget
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import Session, open_run
from weft.models import registry
from weft.models.config import read_config
from weft.workspace import open_blobs
from weft_tabletop.make import make
from weft_tabletop.make.enlarged import check_side

REFERENCE_JUDGE = "tabletop/exact"
FAULTY_MODEL = "tabletop/faulty"
FOLDER = "judge-check"  # in the user's home
SIDES = (256, 512, 1024)  # of images, in pixels
REPEATS = 3  # of a question that is asked again
REPEATED_PART = 4  # one question in this many is asked again, with a line, padded, ...
MIN_ANSWERS = 8  # in a sitting
LARGE_SIDE = 1024  # images of this side and above get fewer answers
LARGE_SHARE = 1 / 3


class ExamPaper(Struct, frozen=True):
    """A benchmark in the exam."""

    benchmark: str
    dataset: str  # the tabletop dataset that is made for it
    questions: float  # that one answer leads to, about
    has_text: bool = False  # whether texts of its answers are judged
    options: Mapping[str, Any] = {}  # of the benchmark


PAPERS: Mapping[str, tuple[ExamPaper, ...]] = {
    "weave": (ExamPaper("weave", "tabletop-weave-single", 2.3, has_text=True),),
    "imug": (ExamPaper("imug", "tabletop-imug", 2.6),),
    "rover": (ExamPaper("rover-ig", "tabletop-rover", 5, has_text=True), ExamPaper("rover-tg", "tabletop-rover", 2)),
    "planviz": (ExamPaper("planviz", "tabletop-planviz", 3),),
    "weaver": (ExamPaper("weaverbench", "tabletop-weaver", 1.5, has_text=True),),
}
# for a judge that accepts no images
TEXT_PAPER = ExamPaper("weave", "tabletop-weave-single", 0.3, has_text=True, options={"turns": "text"})
ROVER_SHARES = {"rover-ig": 2 / 3, "rover-tg": 1 / 3}  # of the samples in the common dataset


class Sitting(Struct, frozen=True):
    """One run of the exam."""

    name: str
    paper: ExamPaper
    condition: str  # plain, reference, repeats, or what was done to the answers
    side: int  # of the images, in pixels
    job: RunConfig | None = None  # None for battles
    fight: tuple[str, str] = ("", "")  # the two sittings whose answers a battle compares


class Exam(Struct, frozen=True):
    """What a judge is asked for its calibration card."""

    judge: Any
    home: Path
    benchmarks: tuple[str, ...] = tuple(PAPERS)
    questions: int = 200  # about as many for each benchmark, before repeats and changes
    sides: tuple[int, ...] = SIDES
    judge_options: Mapping[str, Any] = {}
    prompts: str = "weft"
    concurrency: int | None = None
    seed: int = 0
    preflight: bool = False

    @property
    def folder(self) -> Path:
        """Where its runs and data are."""
        return self.home / FOLDER

    def papers(self) -> list[ExamPaper]:
        """The papers of the chosen benchmarks; for a judge that accepts no images, the one about texts."""
        unknown = [name for name in self.benchmarks if name not in PAPERS]
        if unknown:
            raise UserError(f"there is no exam about {unknown[0]!r}; there is one about {', '.join(PAPERS)}")
        if not self.accepts_images():
            if "weave" not in self.benchmarks:
                raise UserError(
                    "this judge accepts no images, and only weave has questions about text alone: name it in "
                    "--benchmarks"
                )
            return [TEXT_PAPER]
        papers: list[ExamPaper] = []
        for name in dict.fromkeys(self.benchmarks):
            papers += PAPERS[name]
        return papers

    def accepts_images(self) -> bool:
        """Whether the judge can be shown images at all."""
        if isinstance(self.judge, str) and self.judge.startswith("tabletop/"):
            return True  # it cannot be opened yet: it needs the data that are still to be made
        blobs = open_blobs(self.folder)
        endpoint = registry.resolve_endpoint(self.judge, blobs, self.judge_options, read_config(), "")
        return endpoint.takes.images != "none"

    def sittings(self) -> list[Sitting]:
        """All runs of the exam, each after those that it depends on."""
        if self.questions < 1 or not self.sides:
            raise UserError("give at least one question and one image size")
        for side in self.sides:
            check_side(side)
        sittings: list[Sitting] = []
        for paper in self.papers():
            sittings += self._paper_sittings(paper)
        return sittings

    def _paper_sittings(self, paper: ExamPaper) -> list[Sitting]:
        is_text_only = bool(paper.options)
        sides = self.sides[:1] if is_text_only else self.sides
        sittings: list[Sitting] = []
        for side in sides:
            count = self._count_samples(paper, side, sides)
            sittings.append(self._sitting(paper, "reference", side, count, judge=REFERENCE_JUDGE))
            sittings.append(self._sitting(paper, "plain", side, count))
        # Repeats and changed answers are asked at a medium size.
        side = max((side for side in sides if side < LARGE_SIDE), default=sides[-1])
        count = self._count_samples(paper, side, sides)
        fewest = MIN_ANSWERS * 4 if is_text_only else MIN_ANSWERS
        limit = min(count, max(fewest, math.ceil(self.questions / paper.questions / REPEATED_PART)))
        sittings.append(self._sitting(paper, "repeats", side, count, limit=limit, judge_repeats=REPEATS))
        if not is_text_only:
            sittings += [
                self._sitting(paper, f"stamp {line}", side, count, limit=limit, model={"stamp": line})
                for line in ("neutral", "obey")
            ]
        if paper.has_text:
            # Of weave all answers: its questions about images do not change with the text, and are cached.
            text_limit = count if paper.benchmark == "weave" else limit
            for change in ("neutral", "obey", "long", "markdown"):
                model = {"says": change}
                sittings.append(self._sitting(paper, f"says {change}", side, count, limit=text_limit, model=model))
        if paper.benchmark == "weaverbench":
            sittings += self._battle_sittings(paper, side, count)
        return sittings

    def _battle_sittings(self, paper: ExamPaper, side: int, count: int) -> list[Sitting]:
        """Other answers to the same requests, and battles between both under the reference judge and the judge."""
        model = {"seed": self.seed + 1}
        other = self._sitting(paper, "other answers", side, count, judge=REFERENCE_JUDGE, model=model)
        fight = (f"{paper.benchmark} {side} reference", other.name)
        sittings = [other]
        for judge in ("reference", "plain"):
            condition = f"battles {judge}"
            sittings.append(Sitting(f"{paper.benchmark} {condition}", paper, condition, side, None, fight))
        return sittings

    def _count_samples(self, paper: ExamPaper, side: int, sides: Sequence[int]) -> int:
        """The number of answers at an image size. A large image takes as long as sixteen small ones, so there are
        fewer of them."""
        shares = {size: LARGE_SHARE if size >= LARGE_SIDE and len(sides) > 1 else 1.0 for size in sides}
        count = self.questions / paper.questions * shares[side] / sum(shares.values())
        return max(MIN_ANSWERS, math.ceil(count))

    def _sitting(
        self, paper: ExamPaper, condition: str, side: int, count: int, *, judge: str = "", **more: Any
    ) -> Sitting:
        options: dict[str, Any] = {"seed": self.seed, "side": side}
        options.update(more.pop("model", {}))
        job = RunConfig(
            benchmark=paper.benchmark,
            data=self.data_folder(paper, side, count),
            model=FAULTY_MODEL,
            judge=judge or self.judge,
            options=paper.options,
            home=self.folder,
            prompts=self.prompts,
            model_options=options,
            judge_options={} if judge else self.judge_options,
            concurrency=self.concurrency,
            preflight=self.preflight and not judge,
            **more,
        )
        return Sitting(f"{paper.benchmark} {side} {condition}", paper, condition, side, job)

    def data_folder(self, paper: ExamPaper, side: int, count: int) -> Path:
        """Where the data of a paper are: the name says how to make them."""
        samples = count
        if paper.benchmark in ROVER_SHARES:
            samples = math.ceil(count / ROVER_SHARES[paper.benchmark] / 6) * 6
        return self.folder / "data" / f"{paper.dataset}-{side}-{samples}-{self.seed}"

    def prepare(self, sitting: Sitting) -> None:
        """Make the data of a sitting, if they are not there yet."""
        if sitting.job is None:
            return
        data = Path(sitting.job.data)
        if not data.is_dir():
            data.parent.mkdir(parents=True, exist_ok=True)
            _, side, count, seed = data.name.rsplit("-", 3)
            make(sitting.paper.dataset, data, samples=int(count), seed=int(seed) + int(side), side=int(side))

    def opened(
        self, sitting: Sitting, runs: Mapping[str, str], budget: Budget | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """The session of a sitting; `runs` are the ids of the runs before it, by the names of their sittings, and
        `budget` is that of all sittings."""
        limit = None if budget is None else budget.limit
        if sitting.job is not None:
            return open_run(replace(sitting.job, budget=limit), budget=budget)
        is_reference = sitting.condition.endswith("reference")
        config = RunConfig(
            judge=REFERENCE_JUDGE if is_reference else self.judge,
            options={"both_orders": True},
            home=self.folder,
            prompts=self.prompts,
            judge_options={} if is_reference else self.judge_options,
            concurrency=self.concurrency,
            budget=limit,
            preflight=False,
        )
        return open_run(config, StoredAnswers(tuple(runs[name] for name in sitting.fight)), budget=budget)


def judged_sittings(sittings: Sequence[Sitting]) -> list[Sitting]:
    """The sittings in which the judge itself is asked."""
    reference = ("reference", "other answers", "battles reference")
    return [sitting for sitting in sittings if sitting.condition not in reference]
