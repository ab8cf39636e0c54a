"""Contractions and convolutions in register tiles."""
