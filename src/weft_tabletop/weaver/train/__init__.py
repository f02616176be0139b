"""The networks, and the stages of their training (torch).

planner_net.py    visualizer_net.py     the networks           loop.py       the loop that all stages share
planner.py        visualizer.py         joint.py               recall.py     a stage each: its loss, what is measured
stages.py         from a recipe to a folder of weights         measure.py    what is measured on held-out rows
generate.py                             replies of many rows at once
"""
