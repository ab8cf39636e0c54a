"""Values of parsed JSON: what each reader takes, and that nothing else passes for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.runtime import strict

READERS = {"whole": strict.whole, "flag": strict.flag, "text": strict.text, "mapping": strict.mapping}
JSON = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(max_size=3),
    st.floats(),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
KINDS: dict[str, type[Any]] = {"whole": int, "flag": bool, "text": str, "mapping": dict}


@given(JSON, st.sampled_from(sorted(READERS)))
def test_a_value_is_taken_as_its_own_type_or_refused(value: object, name: str) -> None:
    fits = type(value) is KINDS[name] and not (isinstance(value, int) and abs(value) >= strict.LARGEST)
    if fits:
        assert READERS[name](value) is value
    else:
        with pytest.raises(ValueError, match="no|not"):
            READERS[name](value)


@pytest.mark.parametrize("number", [strict.LARGEST, -strict.LARGEST])
def test_numbers_too_large_for_arithmetic_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="not a number"):
        strict.whole(number)
    assert strict.whole(number - 1 if number > 0 else number + 1)


def test_bounds_are_inclusive() -> None:
    assert [strict.within(number, -1, 1) for number in (-1, 0, 1)] == [-1, 0, 1]
    for number in (-2, 2):
        with pytest.raises(ValueError, match=rf"{number} is not in -1\.\.1"):
            strict.within(number, -1, 1)
    with pytest.raises(ValueError, match="not a number: True"):
        strict.within(True, 0, 1)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match="x{50,56}[.]{3}$"):
        strict.whole("x" * 500)
