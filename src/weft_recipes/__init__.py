"""Recipes for `weft build`: WEAVE's pathways as the paper's Appendix A.1 describes them, each alone or mixed, with
prompts of our own. They are found by their entry points, like any user's."""
