"""Files that one process holds at a time.

The lock is the system's (flock(2)): it goes with the process, however that ends.
"""

from __future__ import annotations


def locks(descriptor: int) -> bool:
    """Lock an open file until it is closed; whether nobody else holds it. Raises OSError where files cannot be locked,
    and ImportError on a system without flock."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True
