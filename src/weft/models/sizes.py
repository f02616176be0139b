"""How the size of a picture is told to services that know it by its shape alone."""


def nearest_ratio(size: tuple[int, int]) -> str:
    """The nearest of the ratios that services know."""
    known = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
    wanted = size[0] / size[1]
    return min(known, key=lambda one: abs(int(one.split(":")[0]) / int(one.split(":")[1]) - wanted))
