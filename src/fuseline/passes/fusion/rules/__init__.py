"""Fusion rules, one per file; found by file name."""
