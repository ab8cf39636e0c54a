"""What families build kernels from: the bodies of ops at points, register tiles, elementary functions."""
