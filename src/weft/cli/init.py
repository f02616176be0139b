"""weft init"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

TEMPLATE = """# weft.toml: what is the same from one command to the next. It lies beside the work (or: weft --config FILE ...).
# Keys never stand here: they come from the environment (`weft doctor` names the variables).

[defaults]                        # any option of any command, under its long name
# judge = "judge"                 # a name from below
# home = "/data/weft"             # the journal; default .weft, or what WEFT_HOME says
# concurrency = 16
# budget = 20.0                   # USD for one command

# [defaults.run]                  # of one command
# judge_repeats = 3

# [defaults.weave]                # of one benchmark, its own options included: weft run weave --model mine
# data = "data/weave"
# history = "dialogue"

# [models.mine]                   # weft run weave --model mine
# use = "openai-chat/NAME@http://127.0.0.1:8000/v1"       # several servers: @URL,URL
# version = "step-2000"           # its answers are kept under name and version, wherever it is served; change it with the weights
# temperature = 0.7
# seed = 0

# [models.judge]
# use = "openai/gpt-4.1"
# max_tokens = 1400
# key_env = "MY_KEY"              # the variable with the key, where it is not the provider's own

# [prices."NAME"]                 # USD per million tokens, and per picture where that is what is paid for
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
    out: Annotated[o.Path, typer.Argument(help="The file to write.")] = o.Path("weft.toml"),
) -> None:
    """Write a weft.toml with comments: models with their options and versions, prices, defaults for every option, a suite.

    Examples:

      weft init

      weft init suite.toml && weft --config suite.toml suite run --models mine --judge judge
    """
    from weft.errors import UserError

    if out.exists():
        raise UserError(f"{out} is there already; name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(TEMPLATE, encoding="utf-8")
    say(f"{out}: take away the # of what you need")
