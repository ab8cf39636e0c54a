"""The queue of candidates: by rank, then in the order in which they came."""

from __future__ import annotations

import random

import pytest

from fuseline.passes.fusion.candidate_queue import CandidateQueue, Rank


def test_less_comes_first_and_equals_in_the_order_they_came():
    rng = random.Random(3)
    ranks: list[Rank] = [
        (rng.randrange(3), -rng.randrange(4), 0, -rng.randrange(2), rng.choice("ab"), "c") for _ in range(60)
    ]
    queue: CandidateQueue[tuple[Rank, int]] = CandidateQueue()
    for i, rank in enumerate(ranks):
        queue.push(rank, (rank, i))
    found = [queue.pop()[1] for _ in ranks]
    assert found == sorted((rank, i) for i, rank in enumerate(ranks))


def test_an_empty_queue_is_false_and_has_nothing():
    queue: CandidateQueue[int] = CandidateQueue()
    assert not queue
    with pytest.raises(IndexError):
        queue.pop()
