"""The twelve categories by which WEAVE-100k varies its edits and its recalled objects, in the paper's proportions."""

from collections.abc import Mapping

from weft.benchmarks.weave.training_names import CATEGORIES, EDIT_COUNTS, RECALL_COUNTS
from weft_recipes.shares import CATEGORY, choose

SUBJECTS: Mapping[str, str] = {
    "Animals": "animals: pets, farm animals, wildlife, sea life, insects or creatures of legend",
    "Architecture": "buildings from outside or rooms from inside, of any age and style",
    "Cartoon": "drawn figures: comic heroes, mascots, robots, toys that live",
    "Fashion": "clothes and accessories, worn, hung or laid out",
    "Fantasy": "magic or science fiction: creatures, spaceships, cities that do not exist",
    "Food": "food and drink on a table, in a kitchen, at a stall or on a picnic",
    "Nature Landscapes": "landscapes in some season and weather: mountains, coasts, forests, deserts, skies",
    "Plants": "flowers, trees and potted plants, in a garden, a vase or a greenhouse",
    "Products": "things for sale or for daily use: electronics, household goods, books, toys, tools",
    "Real Human": "people as photographs show them: portraits, at work, at leisure, in company",
    "Sports": "sports and exercise: games with a ball, gymnastics, climbing, and what belongs to them",
    "Vehicles": "vehicles on land, on water or in the air, from any side",
}
RECALL: Mapping[str, int] = dict(zip(CATEGORIES, RECALL_COUNTS, strict=True))
EDIT: Mapping[str, int] = dict(zip(CATEGORIES, EDIT_COUNTS, strict=True))


def choose_category(number: int, counts: Mapping[str, int]) -> str:
    """Return the category of a seed."""
    return choose(number, counts, CATEGORY)
