"""Several heavy ops and reductions over one grid of loops, block by block."""
