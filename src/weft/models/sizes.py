"""Image sizes for services that only accept an aspect ratio."""

RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")


def nearest_ratio(size: tuple[int, int]) -> str:
    """Return the common aspect ratio that is nearest to a size in pixels."""
    wanted = size[0] / size[1]

    def distance(ratio: str) -> float:
        width, height = ratio.split(":")
        return abs(int(width) / int(height) - wanted)

    return min(RATIOS, key=distance)
