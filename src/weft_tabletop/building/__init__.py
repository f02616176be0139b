"""Recipes for `weft build` on the tabletop: the oracle writes, any tabletop model draws, `tabletop/erring` checks."""
