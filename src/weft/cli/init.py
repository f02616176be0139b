"""weft init"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.terminal import say

TEMPLATE = """# weft.toml, read from the working directory (or: weft --config FILE ...): settings for all commands.
# Keys are never written here: they come from the environment (`weft doctor` names the variables).

[defaults]                        # any option of any command, under its long name
# judge = "judge"                 # a name from below
# home = "/data/weft"             # the journal; default: .weft, or the value of WEFT_HOME
# concurrency = 16
# budget = 20.0                   # USD for one command

# [defaults.run]                  # of one command
# judge_repeats = 3

# [defaults.weave]                # of one benchmark, its own options included: weft run weave --model mine
# data = "data/weave"
# history = "dialogue"

# [models.mine]                   # weft run weave --model mine
# use = "openai-chat/NAME@http://127.0.0.1:8000/v1"       # several servers: @URL,URL
# version = "step-2000"           # part of the cache key, wherever it is served; change it with the weights
# temperature = 0.7
# seed = 0

# [models.judge]
# use = "openai/gpt-4.1"
# max_tokens = 1400
# key_env = "MY_KEY"              # the variable with the key, if it is not the provider's own

# [prices."NAME"]                 # USD per million tokens, and per image if images are billed
# in = 1.0
# out = 4.0
# image = 0.04

# [suite.weave]                   # weft suite run --models mine,other --judge judge
# data = "data/weave"
# history = "dialogue"

# [suite.imug]
# data = "data/imug"
"""


def init(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("weft.toml"),
) -> None:
    """Write a weft.toml with comments.

    Models with their options and versions, prices, defaults for every option, a suite.

    Examples:

      weft init

      weft init suite.toml && weft --config suite.toml suite run --models mine --judge judge
    """
    from weft.errors import UserError

    if out.exists():
        raise UserError(f"{out} exists already; name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(TEMPLATE, encoding="utf-8")
    say(f"{out}: remove the # in front of what you need")
