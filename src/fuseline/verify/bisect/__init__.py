"""`fuseline bisect`: the decision that makes a program wrong, or slow.

criterion.py   whether a program shows it: outputs against a reference, a command, the code of an error
isolated.py    running what may end its process in one of its own
trial.py       one compile with so much fuel, judged
search.py      the first decision of a kind with which it shows
original.py    what no fuel turns off: reading, needed passes
prefix.py      of a pass that is at fault, the op that it breaks
slow.py        the same for time
forbidden_merge.py  a guilty merge forbidden by a plan, alone
finding.py     all of that for one model
halving.py     where something begins to show
plan_sides.py     what two plans make of a model
plan_changes.py   what the second decides otherwise; plan_steps.py: a merge at a time
plan_trials.py    programs between the two
plan_finding.py   which decision of a plan does it; plan_culprits.py: in words
"""
