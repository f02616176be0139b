"""A judge is checked at the terminal: its sittings one after another, then its card."""

import re
import time
from pathlib import Path

from weft.cli.screen import Screen
from weft.cli.show import show_table
from weft.cli.terminal import complain, say
from weft.cli.work import quietly
from weft.errors import UnusableJudge, UserError
from weft.evaluation.session import run_in_loop
from weft.judge_eval.calibration import page
from weft.judge_eval.calibration.card import card_of
from weft.judge_eval.calibration.exam import Exam, Sitting, judged_sittings
from weft.judge_eval.calibration.tables import findings, tables
from weft.results.cards import CARDS_FOLDER, CalibrationCard, read_cards, write_card
from weft.results.run import Run

ON_THE_PAGE = ("fault by fault", "lies between", "size of the pictures")  # what is too much for a terminal


def check_judge(
    exam: Exam, *, out: Path | None = None, budget: float | None = None, dry_run: bool = False, show: bool = False
) -> None:
    console = Screen(stderr=True, soft_wrap=True)
    sittings = exam.sittings()
    mine = judged_sittings(sittings)
    runs: dict[str, Run] = {}
    left = budget
    for number, sitting in enumerate(sittings, start=1):
        console.print(
            f"{number} of {len(sittings)}: {sitting.name}{'' if sitting in mine else ' (nobody is paid for it)'}"
        )
        exam.prepare(sitting)
        ids = {name: run.id for name, run in runs.items()}
        if dry_run and sitting in mine and not sitting.fight[0]:
            run_in_loop(_foreseen(exam, sitting, ids))
            continue
        if dry_run and sitting.fight[0]:
            continue
        runs[sitting.name] = quietly(exam.opened(sitting, ids, left), console, UnusableJudge)
        if left is not None and sitting in mine:
            spent = sum(one.cost or 0.0 for one in runs[sitting.name].totals if one.role == "judge")
            left = max(0.0, left - spent)
    if dry_run:
        return
    card = card_of(exam, sittings, runs, time.time())
    file = write_card(exam.home, card)
    _show(card)
    place = out or Path("reports") / f"judge-{re.sub(r'[^a-z0-9.]+', '-', card.name.lower()).strip('-.')}.html"
    page.write(card, place)
    say(place)
    complain(f"the card is kept: {file}")
    if show:
        import webbrowser

        webbrowser.open(place.absolute().as_uri())


async def _foreseen(exam: Exam, sitting: Sitting, ids: dict[str, str]) -> None:
    async with exam.opened(sitting, ids) as session:
        share = (await session.dry_run())["judge"]
        if share.cost is None:
            cost = "price unknown"
        else:
            cost = f"about ${share.cost:.2f}"
        say(f"{sitting.name}: {share.calls} calls to make ({share.cached} answered already), {cost}")


def _show(card: CalibrationCard) -> None:
    screen = Screen(soft_wrap=True)
    for table in (table for table in tables(card) if not table.title.endswith(ON_THE_PAGE)):
        show_table(screen, table, ranges=True)
        screen.print(table.note)
    found = findings(card)
    screen.print("What must be known of it:" if found else "There is nothing that its intervals leave no doubt about.")
    for line in found:
        screen.print(f"- {line}")
    screen.print(page.describe_card(card))
    screen.print("Fault by fault, by size of the pictures, and reliability: on the page.")


def show_cards(home: Path, name: str) -> None:
    found = [card for card in read_cards(home) if name.lower() in card.name.lower()]
    if not found:
        raise UserError(
            f"there is no card{' of ' + name if name else ''} in {home / CARDS_FOLDER}: weft judge check --judge JUDGE makes one"
        )
    for card in found:
        day = time.strftime("%Y-%m-%d", time.gmtime(card.created))
        say(f"{card.name}, {day}: {', '.join(card.prompts)}; {page.describe_card(card)}")
        for line in findings(card):
            say(f"- {line}")
