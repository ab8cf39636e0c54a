"""Dispatches and decisions in the formats of other viewers."""
