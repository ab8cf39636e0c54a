"""`fuseline check`: a program held against what it was compiled from, dispatch by dispatch.

programs.py     compiles, and keeps the kernels and the schedule of every program of the compile
stepping.py     runs a program natively, one step at a time, in memory laid out as the program's own
agreement.py    native results against the interpreter in float64
proofs.py       the bounds checker over the kernels of each launch
not_finite.py   the op that makes the first NaN or infinity
whole.py        outputs against another runtime
artifact.py     what can be asked of an artifact without its model
model.py        all of that for one model
"""
