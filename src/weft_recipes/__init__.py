"""Recipes for `weft build`: WEAVE's first two pathways, as the paper's Appendix A.1 describes them, with prompts of our
own. They are found by their entry points, like any user's."""
