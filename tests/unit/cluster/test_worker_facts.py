"""What a worker says of itself."""

from __future__ import annotations

import json
import os

from fuseline.cluster.worker_facts import sources_digest, worker_facts
from fuseline.runtime.processors import allowed_processors
from fuseline.tuning.machine_kind import machine_kind
from fuseline.version import VERSION


def test_facts_are_plain():
    before = os.sched_getaffinity(0)
    facts = worker_facts(1)
    assert json.loads(json.dumps(facts)) == facts
    assert os.sched_getaffinity(0) == before
    assert facts["version"] == VERSION and facts["process"] == os.getpid() and facts["packages"]["numpy"]


def test_the_kind_is_that_of_the_cores_that_work_is_held_to():
    assert worker_facts(1)["kind"].endswith(", 1 processor")
    assert worker_facts(len(allowed_processors()))["kind"] == machine_kind()


def test_sources_have_a_digest():
    assert len(sources_digest()) == 12 and int(sources_digest(), 16) >= 0
