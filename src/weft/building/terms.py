"""What may be done with what a build's models made: licences and terms, by role.

A model's own licence is used where it is known: that of weights with a model card, or of a program. For a service there
is only what the user states: `--terms painter="..."`. Terms that nobody stated are unknown, and an export refuses them.
`files` are the user's files that images come from, `program` is the recipe's own program.
"""

from collections.abc import Iterable, Mapping

from weft.building.draft import Row
from weft.building.provenance import FILES, OWN_PROGRAM, find_party, iterate_origins
from weft.building.recipe import Recipe, is_player
from weft.errors import UserError
from weft.models.endpoint import Endpoint

MAX_TERMS = 500  # characters
OWN_LICENCE = "Apache-2.0"  # of weft's recipes, and so of what their programs draw and say
BUILDERS_OWN = "the builder's own"  # of a recipe that somebody wrote, unless stated otherwise
ACCEPT = "--accept-unknown-terms"


def find_licences(recipe: Recipe, endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """Return the licences that models and programs have of themselves, by player and `program`."""
    licences = {player: endpoint.licence for player, endpoint in endpoints.items() if endpoint.licence}
    is_ours = type(recipe).__module__.partition(".")[0] in ("weft_recipes", "weft_tabletop")
    licences[OWN_PROGRAM] = OWN_LICENCE if is_ours else BUILDERS_OWN
    return licences


def check_stated(stated: Mapping[str, str], roles: Iterable[str], players: Iterable[str]) -> None:
    """Raise UserError for terms of a role that there is not, and for empty ones."""
    parties = list(dict.fromkeys((*roles, *players, FILES, OWN_PROGRAM)))
    for party, text in stated.items():
        if party not in parties:
            raise UserError(f"--terms {party}=...: there is no such role; there is {', '.join(parties)}")
        if not text.strip() or len(text) > MAX_TERMS or not text.isprintable():
            raise UserError(f"--terms {party}=...: give one line of at most {MAX_TERMS} characters")


def spread_terms(stated: Mapping[str, str], models: Mapping[str, object]) -> dict[str, str]:
    """Return what was stated by player, `files` or `program`. `models` are the identities of all players.

    The terms of a role are those of all who play it, and those of a model are the same in every role, unless a role or
    player has its own.
    """
    spread = {party: text.strip() for party, text in stated.items()}
    for player in models:
        roles = [party for party in stated if is_player(player, party)]
        if roles and player not in stated:
            spread[player] = stated[roles[0]].strip()
    for player, model in models.items():
        same = [spread[other] for other, its_model in models.items() if its_model == model and other in spread]
        if same and player not in spread:
            spread[player] = same[0]
    return {party: text for party, text in spread.items() if party in models or party in (FILES, OWN_PROGRAM)}


def check_terms(parties: Iterable[str], terms: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Raise UserError if the terms of one of these parties are unknown."""
    unknown = sorted(party for party in parties if not terms.get(party))
    if not unknown:
        return
    listed = ", ".join(f"{party} ({names[party]})" if party in names else party for party in unknown)
    raise UserError(
        f"the terms of {listed} are unknown: a provider may forbid training on what its models make. Read them, "
        f'then state them, for example weft build card DIR --terms {unknown[0]}="..."; or export with {ACCEPT}'
    )


def find_parties(rows: Iterable[Row]) -> set[str] | None:
    """Return whose terms count for these dialogues; None if one of them does not say where it comes from."""
    parties: set[str] = set()
    for row in rows:
        if row.provenance is None:
            return None
        parties.update(map(find_party, iterate_origins(row.provenance)))
    return parties
