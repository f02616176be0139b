"""The tiny model: one decoder-only transformer over words and image codes, interleaved; it reads and writes both.

vocab.py     words and image codes as numbers           prompt.py      a dialogue as one sequence
corpus.py    dialogues to train on                      weights.py     files of int8 tensors
net.py       the two networks (torch)                   train.py       how they are trained (torch)
infer.py     the same networks in numpy, with a cache   endpoint.py    the model as weft calls it
"""
