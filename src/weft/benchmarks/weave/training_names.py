"""The domains and types of WEAVE-100k as the paper's Table 5 names and counts them, however a file spells them."""

from collections.abc import Iterator, Mapping

UNNAMED = "None"  # Table 5's word for dialogues without a type
CATEGORIES = (
    *("Animals", "Architecture", "Cartoon", "Fashion", "Fantasy", "Food", "Nature Landscapes", "Plants"),
    *("Products", "Real Human", "Sports", "Vehicles"),
)
RECALL_COUNTS = (91, 74, 135, 73, 126, 116, 164, 54, 77, 347, 49, 63)
EDIT_COUNTS = (263, 114, 96, 141, 98, 234, 105, 97, 164, 136, 98, 96)
TABLE_5: Mapping[str, Mapping[str, int]] = {
    "Multi-image Fusion": {"GPT-Image": 72348, "SeeDream": 3648},
    "Recall": dict(zip(CATEGORIES, RECALL_COUNTS, strict=True)),
    "Edit": {UNNAMED: 18261, **dict(zip(CATEGORIES, EDIT_COUNTS, strict=True))},
    "Visual Jigsaw": {UNNAMED: 1286},
    "Chess Game": {UNNAMED: 2196},
}
DOMAIN_ALIASES = {
    "Multi-image Fusion": ("fusion", "imagefusion", "multifusion"),
    "Recall": (),
    "Edit": ("editing", "edits"),
    "Visual Jigsaw": ("jigsaw",),
    "Chess Game": ("chess",),
}
TYPE_ALIASES = {
    "GPT-Image": ("gpt", "gptimage1", "gpt4o"),
    "SeeDream": ("seedream4", "seedream40"),
    UNNAMED: ("", "na", "null", "other"),
    "Animals": ("animal",),
    "Food": ("foods", "fooddrink", "foodanddrink"),
    "Nature Landscapes": ("nature", "landscape", "landscapes", "naturelandscape", "natureandlandscapes"),
    "Plants": ("plant",),
    "Products": ("product",),
    "Real Human": ("realhumans", "human", "humans", "people", "portrait"),
    "Sports": ("sport",),
    "Vehicles": ("vehicle",),
}


def squeeze(text: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, text.lower()))


def _spellings(aliases: Mapping[str, tuple[str, ...]], names: Iterator[str]) -> dict[str, str]:
    spellings = {squeeze(name): name for name in names}
    for name, others in aliases.items():
        spellings.update(dict.fromkeys(others, name))
    return spellings


DOMAINS = _spellings(DOMAIN_ALIASES, iter(TABLE_5))
TYPES = _spellings(TYPE_ALIASES, iter(("GPT-Image", "SeeDream", UNNAMED, *CATEGORIES)))


def find_domain(text: str) -> str | None:
    """Return Table 5's name of a domain; None for any other word."""
    return DOMAINS.get(squeeze(text))


def find_type(text: str) -> str | None:
    """Return Table 5's name of a type within a domain; None for any other word."""
    return TYPES.get(squeeze(text))


def split_name(text: str) -> tuple[str, str] | None:
    """Return domain and type of a name that has both, such as `recall/animals` or `edit_real_human`."""
    squeezed = squeeze(text)
    for spelling, domain in DOMAINS.items():
        rest = squeezed.removeprefix(spelling)
        if rest != squeezed and rest in TYPES:
            return domain, TYPES[rest]
    return None


def published_groups() -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield every group of Table 5 with its number of dialogues."""
    for domain, counts in TABLE_5.items():
        yield (domain,), sum(counts.values())
        for name, count in counts.items():
            yield (domain, name), count
