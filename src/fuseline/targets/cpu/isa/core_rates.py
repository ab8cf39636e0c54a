"""What one core does per cycle, for choosing tiles and blocks: ratios matter, so the figures serve every machine in
view (Zen 2 and later, Intel since Skylake). What whole loops and launches take in nanoseconds is `ir/costs.py`.
"""

from __future__ import annotations

FMA_PER_CYCLE = 2
"""Vector multiply-adds."""

FMA_LATENCY = 4
"""Cycles until the sum may be added to: a tile with fewer than latency * rate accumulators waits for itself."""

LOADS_PER_CYCLE = 2
"""Vectors from the first-level cache."""

L2_VECTORS_PER_CYCLE = 3 / 4
"""Vectors from a core's own second-level cache: 48 bytes a cycle for 64-byte vectors, 24 for 32."""

SHARED_BYTES_PER_CYCLE = 8
"""Read from the cache that cores share."""

SPILLED_BYTES_PER_CYCLE = 4
"""Written and read back by a core through the shared cache: what leaves its second-level cache."""

MEMORY_BYTES_PER_CYCLE = 3
"""Read from memory, an operand larger than `SHARED_CACHE_BYTES`."""

SHARED_CACHE_BYTES = 8 * 1024 * 1024
"""What of the last-level cache one dispatch may count on; one operand of several counts on half."""

L1_SETS = 64
"""Sets of every first-level data cache: addresses 4 KiB apart share a set."""
