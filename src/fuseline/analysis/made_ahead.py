"""What may be made ahead of the points of a dispatch: few elements that they read again and again.

    k[c] = tanh(exp(v[c]))                    k, all of it, once per thread, into scratch
    y[r, c] = x[r, c] * k[c]         =>       for r: y[r, c] = x[r, c] * k[c]

Evaluated where it is read, `k` would be computed anew for every row: of 3,136 rows of 64 elements that takes 4 times as
long as all the rest. As a dispatch of its own it is a launch and a barrier.
"""

from __future__ import annotations

REPEATS = 4
"""How often each thread reads an element again, at the least: making it ahead takes a store and a load."""

LEAST_OPERATIONS = 4
"""Operations per element below which evaluating it again is no more than loading it."""

MOST_BYTES = 32 * 1024
"""Bytes of all values that are made ahead: they stay in the first-level cache."""
