"""What a whole program is after outlining: its schedule, and concats that need no dispatch."""
