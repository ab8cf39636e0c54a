"""Padding passes: a pad is read inside its consumer or written by its producer, never filled and copied."""
