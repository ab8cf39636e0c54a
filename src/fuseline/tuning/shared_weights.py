"""Programs that are compared hold their weights alike: in memory of the same kind, and in the very same where they are
equal.

A program that was just compiled has its weights in fresh memory, one from the cache in pages of its file; what reads
many weights runs 2 % faster on one than on the other, whatever its code.

    incumbent   [w0][w1][w2]          one block of fresh memory
    trial       [w0]    [w2]  [w1']   w0 and w2 are the incumbent's, w1' (packed otherwise) lies in a block of its own
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np

from fuseline.compiled_model import CompiledModel
from fuseline.runtime import Artifact, Session
from fuseline.runtime.memory import Bytes


def on_level_ground(program: CompiledModel, like: CompiledModel | None = None) -> CompiledModel:
    """The program with its weights moved: those that `like` (moved before) has, too, are its, the others lie in a fresh
    block. A program that is no artifact stays as it is."""
    artifact = program.session.artifact
    if not isinstance(artifact, Artifact) or not isinstance(program.session, Session):
        return program
    other = None if like is None else like.session.artifact
    held = _Weights(_all(other) if isinstance(other, Artifact) else ())
    return CompiledModel(Session(_moved(artifact, held), threads=program.threads), from_cache=program.from_cache)


class _Weights:
    """Weights by content."""

    def __init__(self, weights: Iterable[Bytes]) -> None:
        self._known: dict[tuple[int, int], list[Bytes]] = {}
        for array in weights:
            self.add(array)

    def add(self, array: Bytes) -> None:
        self._known.setdefault(_mark(array), []).append(array)

    def same(self, array: Bytes) -> Bytes | None:
        return next((found for found in self._known.get(_mark(array), ()) if np.array_equal(found, array)), None)


def _all(artifact: Artifact) -> list[Bytes]:
    return [*artifact.constants, *(artifact.fallback.constants if artifact.fallback is not None else ())]


def _moved(artifact: Artifact, held: _Weights) -> Artifact:
    found = [held.same(array) for array in artifact.constants]
    fresh = iter(_block([array for array, known in zip(artifact.constants, found, strict=True) if known is None]))
    constants: list[Bytes] = []
    for known in found:
        if known is None:
            known = next(fresh)
            held.add(known)
        constants.append(known)
    fallback = None if artifact.fallback is None else _moved(artifact.fallback, held)
    return artifact._replace(constants=tuple(constants), fallback=fallback)


def _block(arrays: Sequence[Bytes]) -> list[Bytes]:
    """Copies, one behind the other, each on a page of its own as in a file."""
    places = np.cumsum([0, *(-(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE for array in arrays)])
    block = np.frombuffer(mmap.mmap(-1, max(int(places[-1]), 1)), np.uint8)
    copies = [block[place : place + array.nbytes] for place, array in zip(places, arrays, strict=False)]
    for copy, array in zip(copies, arrays, strict=True):
        copy[:] = array
    return copies


def _mark(array: Bytes) -> tuple[int, int]:
    return array.nbytes, crc32(array.data)
