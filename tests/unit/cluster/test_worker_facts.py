"""What a worker says of itself."""

from __future__ import annotations

import json
import os

from fuseline.cluster.worker_facts import sources_digest, worker_facts
from fuseline.tuning.machine_kind import machine_kind
from fuseline.version import VERSION


def test_facts_are_plain():

    facts = worker_facts()
    assert facts["kind"] == machine_kind()
    assert json.loads(json.dumps(facts)) == facts

    assert facts["version"] == VERSION and facts["process"] == os.getpid() and facts["packages"]["numpy"]


def test_sources_have_a_digest():
    assert len(sources_digest()) == 12 and int(sources_digest(), 16) >= 0
