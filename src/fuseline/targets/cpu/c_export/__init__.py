"""A compiled program for callers in C: object file, header, source and example."""
