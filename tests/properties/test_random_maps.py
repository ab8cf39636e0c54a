"""Whatever affine maps a program reads through, and whatever sizes it is fed: native code and the interpreter give
equal numbers or one error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from tests.properties.random_maps import feeds, random_reading

FEEDS = 5
DEFAULT, MANY = 20, 400


def _session(path: Path, target: str) -> Any:
    """The program ready to run, or the code of the error."""
    try:
        program: Any = compile_program(path, CompileOptions(target=target, threads=1, poison=True))
    except FuselineError as error:
        return error.code
    return Session(program) if target == "cpu" else program.session()


def _answer(session: Any, arrays: dict[str, NDArray[Any]]) -> NDArray[Any] | str:
    """The result, or the code of the error."""
    try:
        return next(iter(session.run(arrays).values()))
    except FuselineError as error:
        return error.code


def _check(seed: int, folder: Path) -> tuple[int, int]:
    """How many feeds were computed, and how many refused."""
    rng = np.random.default_rng(seed)
    reading = random_reading(rng)
    path = folder / f"{seed}.mlir"
    path.write_text(reading.text)
    native, reference = (_session(path, target) for target in ("cpu", "interpreter"))
    if isinstance(native, str) or isinstance(reference, str):
        assert native == reference == "E0107", reading.text  # it reads outside whatever the sizes are
        return 0, FEEDS
    computed = refused = 0
    for _ in range(FEEDS):
        arrays = feeds(rng, reading)
        found, wanted = _answer(native, arrays), _answer(reference, arrays)
        if isinstance(wanted, str) or isinstance(found, str):
            assert found == wanted == "E0203", reading.text
            refused += 1
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=reading.text)
            computed += 1
    return computed, refused


def test_some(tmp_path: Path):
    counts = np.sum([_check(seed, tmp_path) for seed in range(DEFAULT)], axis=0)
    assert (counts > DEFAULT).all(), counts  # both happen


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_many(share: int, tmp_path: Path):
    assert all(sum(_check(seed, tmp_path)) == FEEDS for seed in range(DEFAULT + share, DEFAULT + MANY, 8))
