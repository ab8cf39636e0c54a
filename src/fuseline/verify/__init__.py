"""Checking compiled programs: generated inputs, comparison with a reference."""
