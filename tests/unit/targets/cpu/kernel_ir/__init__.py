"""The kernel builder, its consumers, the ISA descriptions and the compile step."""
