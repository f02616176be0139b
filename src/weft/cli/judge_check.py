"""`weft judge check` on the terminal: the sittings of an exam one after another, then the calibration card."""

import re
import time
from pathlib import Path

from weft.calls.budget import Budget
from weft.cli.estimates import format_cost
from weft.cli.execute import run_quietly
from weft.cli.screen import Screen
from weft.cli.tables import print_table
from weft.cli.terminal import complain, open_in_browser, say
from weft.errors import UnusableJudge, UserError
from weft.evaluation.event_loop import run_in_loop
from weft.judge_eval.calibration import page
from weft.judge_eval.calibration.card import card_of
from weft.judge_eval.calibration.exam import Exam, Sitting, judged_sittings
from weft.judge_eval.calibration.tables import findings, tables
from weft.results.cards import CARDS_FOLDER, CalibrationCard, read_cards, write_card
from weft.results.run import Run

# Titles of tables that are too long for a terminal end so; the page has them.
PAGE_ONLY = ("fault by fault", "lies between", "size of the pictures", "size of the images")


def check_judge(
    exam: Exam, *, out: Path | None = None, budget: float | None = None, dry_run: bool = False, open_page: bool = False
) -> None:
    """Examine a judge, store its calibration card, print it and write its page; or print what that would cost."""
    console = Screen(stderr=True, soft_wrap=True)
    sittings = exam.sittings()
    runs = _run_sittings(exam, sittings, console, budget, dry_run=dry_run)
    if dry_run:
        return
    card = card_of(exam, sittings, runs, time.time())
    card_file = write_card(exam.home, card)
    _print_card(card)
    path = out or _default_page(card)
    page.write(card, path)
    say(path)
    complain(f"the calibration card is stored: {card_file}")
    if open_page:
        open_in_browser(path.absolute().as_uri())


def _run_sittings(
    exam: Exam, sittings: list[Sitting], console: Screen, budget: float | None, *, dry_run: bool
) -> dict[str, Run]:
    """Run the sittings of an exam, and return their runs by name. A dry run only prints what the judge would cost, but
    prepares the answers that it would be asked about."""
    with_judge = judged_sittings(sittings)
    runs: dict[str, Run] = {}
    shared_budget = Budget(budget)
    for number, sitting in enumerate(sittings, start=1):
        is_judged = sitting in with_judge
        is_battle = bool(sitting.fight[0])
        header = f"{number} of {len(sittings)}: {sitting.name}"
        if not is_judged:
            header += " (at no cost)"
        console.print(header)
        exam.prepare(sitting)
        run_ids = {name: run.id for name, run in runs.items()}
        if dry_run and is_battle:
            continue
        if dry_run and is_judged:
            run_in_loop(_print_estimate(exam, sitting, run_ids))
            continue
        runs[sitting.name] = run_quietly(exam.opened(sitting, run_ids, shared_budget), console, UnusableJudge)
    return runs


async def _print_estimate(exam: Exam, sitting: Sitting, run_ids: dict[str, str]) -> None:
    async with exam.opened(sitting, run_ids) as session:
        estimate = (await session.dry_run())["judge"]
        say(f"{sitting.name}: {estimate.calls} calls to make ({estimate.cached} cached), {format_cost(estimate.cost)}")


def _default_page(card: CalibrationCard) -> Path:
    name = re.sub(r"[^a-z0-9.]+", "-", card.name.lower()).strip("-.")
    return Path("reports") / f"judge-{name}.html"


def _print_card(card: CalibrationCard) -> None:
    screen = Screen(soft_wrap=True)
    for table in tables(card):
        if not table.title.endswith(PAGE_ONLY):
            print_table(screen, table, intervals=True)
            screen.print(table.note)
    lines = findings(card)
    if lines:
        screen.print("Findings:")
    else:
        screen.print("There are no findings: its intervals exclude nothing.")
    for line in lines:
        screen.print(f"- {line}")
    screen.print(page.describe_card(card))
    screen.print("On the page: fault by fault, by size of the images, and reliability.")


def print_cards(home: Path, name: str) -> None:
    """Print the calibration cards of judges with `name` in their names. Raises UserError if there is none."""
    cards = [card for card in read_cards(home) if name.lower() in card.name.lower()]
    if not cards:
        judge = ""
        if name:
            judge = f" of {name}"
        raise UserError(
            f"there is no calibration card{judge} in {home / CARDS_FOLDER}: weft judge check --judge JUDGE makes one"
        )
    for card in cards:
        day = time.strftime("%Y-%m-%d", time.gmtime(card.created))
        say(f"{card.name}, {day}: {', '.join(card.prompts)}; {page.describe_card(card)}")
        for line in findings(card):
            say(f"- {line}")
