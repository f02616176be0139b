"""PlanViz: planning images (routes, workflows, interfaces), made from words or edited, scored by PlanScore."""

from weft.benchmarks.planviz.protocol import PlanViz

__all__ = ["PlanViz"]
