"""Options of passes: as a pipeline's text has them and as Python gives them, with the types that the pass declares."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.options import parse_steps, pass_options, require_run

FORM = "form-dispatch-regions"


def test_text_and_python_say_the_same() -> None:
    (first, second) = parse_steps(f"{FORM}{{level=none rules=elementwise-cluster}},fold-unit-dims", {})
    assert (first.name, second.name, second.options) == (FORM, "fold-unit-dims", {})
    assert pass_options(FORM, {"level": "none", "rules": ["elementwise-cluster"]}) == first.options


def test_a_phase_stands_for_its_passes() -> None:
    steps = parse_steps("both", {"both": ("fold-unit-dims", FORM)})
    assert [step.name for step in steps] == ["fold-unit-dims", FORM]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        (FORM, {"colour": "red"}, "E0304"),
        (FORM, {"level": object()}, "E0304"),
        (FORM, {"level": [None]}, "E0304"),
        ("no-such-pass", {}, "E0303"),
    ],
)
def test_what_a_pass_does_not_take(name: str, options: dict[str, Any], code: str) -> None:
    with pytest.raises(FuselineError) as caught:
        pass_options(name, options)
    assert caught.value.code == code


def test_options_for_a_pass_that_does_not_run() -> None:
    require_run([FORM], [FORM])
    with pytest.raises(FuselineError, match="does not run it") as caught:
        require_run([FORM], ["fold-unit-dims"])
    assert caught.value.code == "E0304" and caught.value.node == FORM
    with pytest.raises(FuselineError) as unknown:
        require_run(["no-such-pass"], [])
    assert unknown.value.code == "E0303"


def test_a_value_of_no_kind_is_refused_with_the_pass() -> None:
    with pytest.raises(FuselineError, match="level cannot be") as caught:
        pass_options(FORM, {"level": object()})
    assert caught.value.node == FORM
