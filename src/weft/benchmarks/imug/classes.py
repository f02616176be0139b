"""IMUG-Bench's 19 domains in their three classes (paper, Table 5; released `config/domain_classes.json`)."""

CLASSES: dict[str, tuple[str, ...]] = {
    "Static Spatial": (
        "Color_Reasoning",
        "Apparel",
        "Interior_Design",
        "Geometric_Coloring",
        "Mechanisms",
        "Object_Inference",
        "Counterintuitive_Reasoning",
    ),
    "Temporal Causal": ("Botany", "Chemistry", "Physics", "Damage_Repair", "Weather"),
    "Hybrid": ("Stack_Simulation", "DIY", "Cooking", "Mirror_Reasoning", "Storage", "Paper_Crafting", "Everyday_Tasks"),
}
CLASS_OF: dict[str, str] = {domain: name for name, domains in CLASSES.items() for domain in domains}
