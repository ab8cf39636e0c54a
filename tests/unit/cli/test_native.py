"""What is only asked of programs with native code is refused for others by the option's name."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.cli.native import native_session
from fuseline.errors import FuselineError
from tests.small_models import mlp


def test_programs_with_code_have_a_session() -> None:
    program = fuseline.compile(mlp(), threads=1)
    assert native_session(program, "--measure") is program.session


@pytest.mark.parametrize("target", ["null", "interpreter"])
def test_others_are_refused(target: str) -> None:
    with pytest.raises(FuselineError, match="--trace needs a target with code") as caught:
        native_session(fuseline.compile(mlp(), target=target), "--trace")
    assert caught.value.code == "E0501"
