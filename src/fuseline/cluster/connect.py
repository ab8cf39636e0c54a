"""A client of a Dask scheduler: one that runs somewhere, or one with workers that are processes of this machine.

tcp://host:8786     a scheduler that is there
local               a scheduler, and a worker for each core, that end with the work
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from dask import config as dask_config
from distributed import Client, LocalCluster, Security
from distributed.comm.core import connect

from fuseline.cluster.cores import physical_cores
from fuseline.errors import FuselineError

LOCAL = "local"

CONNECT_SECONDS = 10.0
_START_SECONDS = 120.0
"""What the processes of a local cluster may take to start: they import, on a machine that may be busy."""


_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
"""Dask's configuration of a local cluster: nobody looks at what it would sample 100 times a second on the cores that
measure."""


@contextmanager
def connected(scheduler: str, *, cores: int = 1, timeout: float = CONNECT_SECONDS) -> Generator[Client]:
    """A client of `scheduler`, `local` or an address, closed at the end; a local cluster ends with it.

    Args:
        cores: what a piece of work takes: a local cluster has as many workers as fit on this machine's cores.
        timeout: seconds that an address may take to answer.

    Raises FuselineError: E1101 where no scheduler answers.
    """
    with _quiet():
        if scheduler != LOCAL:
            with _client(scheduler, timeout) as client:
                yield client
            return
        workers = max(1, len(physical_cores()) // cores)
        with local_cluster(workers) as cluster, Client(cluster, timeout=_START_SECONDS, set_as_default=False) as client:
            yield client


def _client(address: str, timeout: float) -> Client:
    if "://" not in address:
        hint = "write tcp://host:port, or local"
        raise FuselineError("E1101", f"no address of a scheduler: {address!r}", node="--scheduler", hint=hint)
    try:
        _require_answer(address, timeout)
        return Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as problem:  # nobody there; no such protocol; another kind of server
        hint = "start one with `dask scheduler`, or use --scheduler local"
        raise FuselineError(
            "E1101", f"no scheduler answers: {_first_line(problem)}", node=address, hint=hint
        ) from problem


def _require_answer(address: str, timeout: float) -> None:
    """Raises OSError where nobody speaks Dask's protocol there: `Client` would wait for ever for an answer to its first
    words (distributed/comm/core.py)."""

    async def greet() -> None:
        arguments: dict[str, Any] = Security().get_connection_args("client")
        comm: Any = await asyncio.wait_for(connect(address, timeout, **arguments), timeout)
        comm.abort()

    with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs already
        thread.submit(asyncio.run, greet()).result()


def local_cluster(workers: int) -> LocalCluster:
    """A scheduler in this process and `workers` processes beside it, which leave the cores to what they measure.

    One thread per worker: a thread holds one piece of work. No limit of memory: Dask would end workers at it, and the
    system does where it must. A lost worker comes back (nanny). No port is fixed, no dashboard is served.

    Raises FuselineError: E1101 where the processes do not start.
    """
    try:
        with dask_config.set(_UNWATCHED):
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",  # of its pages of facts, which cannot be left out; None means 8787
                scheduler_kwargs={"dashboard": False},
                host="127.0.0.1",
                scheduler_port=0,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError) as problem:
        raise FuselineError(
            "E1101", f"the processes of a local cluster do not start: {_first_line(problem)}", node=LOCAL
        ) from problem


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


@contextmanager
def _quiet() -> Generator[None]:
    """What Dask logs of lost connections is said here, once and coded."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
