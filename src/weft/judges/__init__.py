"""From a `Question` to its verdicts. `vlm.py` asks a model, `parse.py` reads its reply, `fence.py` keeps material apart from orders,
`official_prompts.py` takes a paper's exact prompts from the user's own checkout."""
