"""`weave-derive`: chess positions and jigsaw puzzles that a program draws. Alternatives are imagined one by one, then
compared, and the best one is chosen; every image and every answer is known exactly."""
