"""The random numbers of tests: fresh in every session, the same for a test whatever ran before it.

A session has one seed, which pytest prints in its header; `FUSELINE_TEST_SEED=n` repeats a session, or one test of it.
"""

from __future__ import annotations

import os
import secrets
from typing import Any
from zlib import crc32

import numpy as np

VARIABLE = "FUSELINE_TEST_SEED"
# In the environment, for the workers of a session that runs in parallel.
SEED = int(os.environ.setdefault(VARIABLE, str(secrets.randbits(32))))


def generator(name: str) -> np.random.Generator:
    """A generator that only the session and `name` determine: for what a module draws where it is imported."""
    return np.random.default_rng([SEED, crc32(name.encode())])


RNG = generator("")
"""The generator that tests and their helpers share: each test starts it anew."""


def start(test: str) -> None:
    """Bring `RNG` to where the test of this name starts."""
    RNG.bit_generator.state = generator(test).bit_generator.state


_default_rng = np.random.default_rng


def _of_the_session(seed: Any = None) -> np.random.Generator:
    """`np.random.default_rng`; without a seed a generator that `RNG` determines, so that such draws repeat, too."""
    return _default_rng(int(RNG.integers(1 << 62)) if seed is None else seed)


np.random.default_rng = _of_the_session
