"""The `fuseline` command: one file per subcommand, found by its name; `main.py` is the door."""
