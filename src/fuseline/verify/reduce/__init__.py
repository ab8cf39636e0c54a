"""`fuseline reduce`: the smallest model that still shows a difference.

candidate.py   a model with its feeds, and the same with fewer nodes
judge.py       whether a candidate still shows it, in a process of its own
nodes.py       fewer outputs, nodes, inputs
sizes.py       smaller dimensions
details.py     attributes and weights
search.py      the loop: what still shows it is kept
written.py     the model, its feeds and a test, as files
"""
