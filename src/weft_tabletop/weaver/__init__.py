"""Planner and visualizer, trained apart as Wan-Weaver's are: one writes words and orders for images, the other draws.

world.py     the whole tabletop, and a micro world     tasks.py      what they are asked
words.py     messages as tokens                        latents.py    images as numbers
rows.py      tasks as arrays                           memory.py     dialogues that ask for memory, as arrays
infer.py     both in numpy                            endpoint.py   both as models of weft
files.py     which weights belong together            sizes.py      what torch and numpy share
recipes.py   what is trained on, and how much
train/       the networks and how they are trained (torch)
"""
