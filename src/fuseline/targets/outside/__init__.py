"""Targets from outside the tree: installed packages with an entry point in the group `fuseline.targets`, and Python
files or folders by their path. `loading` finds and makes them, `checked_target` holds them to the contract of
`targets/target.py`."""
