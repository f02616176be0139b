"""`weave-recall`: something is removed, other things happen, and it is wanted back."""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from weft.building.context import Schema
from weft.building.draft import Draft, Row
from weft.types import Message, Reply, Request, find_mentions
from weft_recipes.categories import RECALL, SUBJECTS, choose_category
from weft_recipes.recall_prompts import RecallPrompts, script_schema
from weft_recipes.rounds import RoundsRecipe, find_round_problem
from weft_recipes.stand_ins import recall_reply

MIN_ROUNDS = 3  # removing, something else, restoring


class Recall(RoundsRecipe):
    name = "weave-recall"
    version = "3"
    title = "Something is removed and later put back: WEAVE's recall pathway"
    prompts = RecallPrompts()
    script_task = "recall script"
    script_about = "a script of rounds, one of which restores what another took"
    min_rounds = MIN_ROUNDS

    def seed(self, number: int) -> Row:
        rng = Random(f"{self.name} {number}")
        asks = rng.random() < self.options.questions
        rounds = self.count_rounds(number)
        return Row(number, {"category": choose_category(number, RECALL), "rounds": rounds, "asks": asks})

    def script_prompt(self, row: Row) -> str:
        return self.prompts.script(row.number, SUBJECTS[row.facts["category"]], row.facts["rounds"])

    def check_prompt(self, script: str) -> str:
        return self.prompts.check(script)

    def script_schema(self, rounds: int) -> Schema:
        return script_schema(rounds)

    def find_problem(self, script: Mapping[str, Any]) -> str:
        return find_script_problem(script)

    def find_orphans(self, script: Mapping[str, Any], lost: Collection[int]) -> Collection[int]:
        """What was not removed is not restored. Round k makes image k + 1."""
        return (int(script["restored_in"]),) if int(script["removed_in"]) + 1 in lost else ()

    def finish(self, row: Row, draft: Draft) -> Draft:
        recalls = any(turn.kind == "restore" for turn in draft.turns)
        return replace(draft, domain="recall" if recalls else "edit", subdomain=row.facts["category"])

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        return recall_reply(request)


def find_script_problem(script: Mapping[str, Any]) -> str:
    """Return what is wrong with a script, as far as rules can tell; empty if nothing is."""
    rounds: list[Mapping[str, Any]] = script["rounds"]
    removed = int(script["removed_in"])
    restored = int(script["restored_in"])
    if not removed < restored - 1:
        return "nothing happens between removing and restoring"
    if rounds[removed - 1]["kind"] != "remove" or rounds[restored - 1]["kind"] != "restore":
        return "the rounds that remove and restore are of another kind"
    problem = find_round_problem(rounds)
    if problem:
        return problem
    if not _depends_on(restored + 1, removed + 1, rounds):
        return "the restoring round does not follow from the removing one"
    restoring = str(rounds[restored - 1]["instruction"])
    if not any(number <= removed for number in find_mentions(restoring)):
        return "the restoring round does not name an image that has the object"
    return ""


def _depends_on(image: int, earlier: int, rounds: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an image was made from an earlier one, at any distance. Round k makes image k + 1."""
    if image <= earlier:
        return image == earlier
    shown = find_mentions(rounds[image - 2]["instruction"])
    return any(_depends_on(number, earlier, rounds) for number in shown if number < image)
