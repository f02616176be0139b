"""weft models"""

from weft.cli.terminal import say


def models() -> None:
    """What can be named as --model and --judge, with options and, for weft.toml, what stands behind each name.

    Examples:

      weft models
    """
    from weft import benchmarks
    from weft.models.compose import composition, compositions
    from weft.models.registry import declared, load_target, providers, read_config
    from weft.secrets import without_secrets

    say("providers")
    for name, (_, what) in sorted(providers().items()):
        say(f"  {name:<12} {what}")
    say(f"  {'truth':<12} the dataset's own answers: what a perfect model would send")
    say(f"  {'file.py:NAME':<12} a function or object of your own: (messages, want) -> str, PIL.Image, or a list of both")
    say("compositions: NAME:role=MODEL,role=MODEL")
    for name in sorted(compositions()):
        say(f"  {name:<12} {', '.join(composition(name).roles)}")
    say("benchmarks")
    for name in sorted(benchmarks.names()):
        say(f"  {name}")
    named = read_config().get("models", {})
    if named:
        say("weft.toml")
        for name, entry in sorted(named.items()):
            rest = ", ".join(f"{key}={value}" for key, value in entry.items() if key != "use")
            say(f"  {name:<12} {without_secrets(str(entry.get('use', '(no `use`)')))}{', ' + rest if rest else ''}")
    say("options")
    for name, (target, _) in sorted(providers().items()):
        if known := declared(load_target(target)):
            say(f"  {name:<12} {', '.join(sorted(known))}")
    say(f"  {'file.py:NAME':<12} name, version, concurrency, timeout, images, own_images, max_side")
