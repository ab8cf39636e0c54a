"""Connecting: who is not there is a coded error, and nothing of a local cluster is left."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

import psutil
import pytest

from fuseline.cluster.connect import connected
from fuseline.errors import FuselineError


def _free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


@pytest.mark.parametrize("address", ["", "127.0.0.1", "nowhere:8786", "nothing://127.0.0.1:1", "tcp://"])
def test_what_is_no_address(address: str):
    with pytest.raises(FuselineError) as raised, connected(address, timeout=0.5):
        pass
    assert raised.value.code == "E1101"


def test_nobody_there():
    address, level = _free_address(), logging.getLogger("distributed").level
    with pytest.raises(FuselineError) as raised, connected(address, timeout=0.5):
        pass
    assert raised.value.code == "E1101" and raised.value.node == address
    assert "--scheduler local" in (raised.value.hint or "")
    assert logging.getLogger("distributed").level == level


def test_somebody_else_is_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(FuselineError) as raised, connected(address, timeout=0.5):
            pass
    assert raised.value.code == "E1101"


@pytest.mark.slow
def test_a_local_cluster_ends_with_the_work():
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    pid = 0
    with pytest.raises(KeyError), connected("local", cores=99) as client:
        answers: Any = client.run(os.getpid)
        (pid,) = answers.values()
        assert psutil.pid_exists(pid)
        raise KeyError
    after = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    assert not psutil.pid_exists(pid)
    assert [p for p in after if "resource_tracker" not in " ".join(p.cmdline())] == []
