"""Kernels that go along one axis in order: scans, scatters, ranks, argument reductions."""
