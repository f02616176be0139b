"""WEAVEBench's 16 domains in their four classes (paper, Figure 3 and Table 2)."""

CLASSES: dict[str, tuple[str, ...]] = {
    "Science": ("optics", "geography", "astronomy", "chemistry", "physics", "biology"),
    "Creation": ("edit", "recall", "fusion", "story"),
    "Logic": ("spatial", "mathematics"),
    "Game": ("chess_game", "visual_jigsaw", "minecraft", "maze"),
}
CLASS_OF: dict[str, str] = {domain: name for name, domains in CLASSES.items() for domain in domains}
