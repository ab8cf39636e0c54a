"""The combinators that kernels are put together from, on the kernel evaluator."""
