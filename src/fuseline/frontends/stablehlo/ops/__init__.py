"""Lowerings of StableHLO ops, grouped by concern."""
