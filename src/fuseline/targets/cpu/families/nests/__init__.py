"""Loop nests: elementwise ops, row reductions, and whatever nothing else takes."""
