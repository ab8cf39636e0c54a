"""One piece of code for kernels that are the same up to numbers."""
