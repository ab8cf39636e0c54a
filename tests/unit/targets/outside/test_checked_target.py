"""A target from outside is held to the contract: exceptions and answers that are none are its faults, by name and line;
good answers pass as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import fuseline
from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import symbol
from fuseline.ir.target_description import TargetRules
from fuseline.targets.interpreter import InterpreterTarget
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.outside.checked_target import CheckedTarget, checked_target
from fuseline.targets.outside.origin import Origin
from fuseline.targets.target import (
    CONTRACT,
    CompiledKernel,
    KernelArm,
    Refusal,
    SharingPrice,
    Target,
    TargetDescription,
)
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

GOOD = TargetDescription("mine")


class Mine(Target):
    """A good target; a test spoils it."""

    contract = CONTRACT
    suffix = ".lst"

    def __init__(self, description: Any = GOOD) -> None:
        self.description = description

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        return [counted_kernel(entry, "mine", entry.sym_name.data) for entry in entries]

    def assemble(self, schedule: Any, kernels: Any, constants: Any, *, records: bytes, metadata: Any) -> Any:
        return "\n".join(kernels)


def _model(rows: int = 5) -> Any:
    w = RNG.standard_normal((7, 3)).astype(np.float32)
    return onnx_model(
        f"(float[{rows}, 7] x) => (y) {{ [product] p = MatMul(x, w) [bend] a = Tanh(p) [sum] y = ReduceSum(a) }}", w=w
    )


def _compiled(monkeypatch: pytest.MonkeyPatch, target: Target, **choices: Any) -> Any:
    checked = checked_target(target, Origin("mine", "mine.py", Path(__file__)))
    monkeypatch.setattr("fuseline.targets.create_target", lambda *_: checked)
    return fuseline.compile(_model(), target="mine", **choices)


def _fault(monkeypatch: pytest.MonkeyPatch, target: Target, **choices: Any) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        _compiled(monkeypatch, target, **choices)
    assert caught.value.code in ("E0801", "E0802") and (caught.value.node or "").startswith("mine")
    return caught.value


def _raise(problem: BaseException) -> Any:
    raise problem


def _spoilt(**methods: Any) -> Target:
    """`Mine` with other methods, each given what it is asked."""
    return type("Spoilt", (Mine,), methods)()


class _Half:
    program, records, session, save = None, "text", None, None


# programs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["a listing\n", b"\0\1", bytearray(b"xyz")])
def test_text_and_bytes_are_written_and_not_run(made: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program = _compiled(monkeypatch, _spoilt(assemble=lambda self, *_, **__: made))
    content = made.encode() if isinstance(made, str) else bytes(made)
    program.save(tmp_path / "deep" / "m.lst")
    assert program.to_bytes() == (tmp_path / "deep" / "m.lst").read_bytes() == content
    assert program.suffix == ".lst" and [item.name for item in program.inputs] == ["x"]
    assert program.record.target == "mine" and program.stats["dispatches"] == len(program.record.dispatches)
    with pytest.raises(FuselineError, match="E0305: what the target mine makes does not run here"):
        program.run({"x": np.zeros((5, 7), np.float32)})
    for store in (lambda: program.save(tmp_path / "n.lst", sign="k"), lambda: program.to_bytes(sign="k")):
        with pytest.raises(FuselineError, match="E0501.*is not signed"):
            store()
    with pytest.raises(FuselineError, match="E0502"):
        program.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_a_suffix_is_chosen_where_none_is_given(monkeypatch: pytest.MonkeyPatch):
    for made in ("text", b"bytes"):
        target = _spoilt(suffix="", assemble=lambda self, *_, made=made, **__: made)
        assert _compiled(monkeypatch, target).suffix == ".listing"


def test_a_program_of_its_own_runs(monkeypatch: pytest.MonkeyPatch):
    class Runs(InterpreterTarget):
        contract = CONTRACT

    x = RNG.standard_normal((5, 7)).astype(np.float32)
    model = _model()
    checked = checked_target(Runs(), Origin("mine", "mine"))
    monkeypatch.setattr("fuseline.targets.create_target", lambda *_: checked)
    found = fuseline.compile(model, target="mine").run({"x": x})["y"]
    monkeypatch.undo()
    assert np.allclose(found, fuseline.compile(model, target="interpreter").run({"x": x})["y"])


@pytest.mark.parametrize(
    ("attributes", "made", "words"),
    [
        ({}, 3, "answered int, which is neither bytes nor text, and as a program lacks program, records, session"),
        ({}, None, "answered NoneType, which is neither"),
        ({"runs_programs": True}, "text", "as a program lacks program, records, session, save, with_fallback"),
        ({}, _Half(), "answered _Half, whose program or records are not those it was given"),
        ({"makes_artifacts": True}, "text", "answered str, which is no Artifact, and makes_artifacts is True"),
    ],
)
def test_what_is_no_program_is_refused(
    attributes: dict[str, Any], made: Any, words: str, monkeypatch: pytest.MonkeyPatch
):
    error = _fault(monkeypatch, _spoilt(assemble=lambda self, *_, **__: made, **attributes))
    assert error.message.startswith("assemble() answered") and words in error.message


# answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["legal", "takes_op", "compile_executables", "assemble"])
@pytest.mark.parametrize("problem", [ZeroDivisionError("no"), SystemExit(2), AssertionError()])
def test_what_a_method_raises_is_the_fault_of_the_target(
    method: str, problem: BaseException, monkeypatch: pytest.MonkeyPatch
):
    error = _fault(monkeypatch, _spoilt(**{method: lambda self, *_, **__: _raise(problem)}))
    assert error.message.startswith(f"{method}()") and f"raised {type(problem).__name__}" in error.message
    assert "(at test_checked_target.py:" in error.message
    if method == "legal":
        assert "contraction (product)" in error.message


def test_coded_errors_and_the_want_of_memory_stay_what_they_are(monkeypatch: pytest.MonkeyPatch):
    for problem, code in ((FuselineError("E0501", "no such variant"), "E0501"), (MemoryError(), "E0405")):
        for method in ("legal", "compile_executables"):
            with pytest.raises(FuselineError) as caught:
                _compiled(monkeypatch, _spoilt(**{method: lambda self, *_, problem=problem, **__: _raise(problem)}))
            assert caught.value.code == code
    own = FuselineError("E0901", "somewhere")
    assert "raised FuselineError" in _fault(monkeypatch, _spoilt(legal=lambda self, _: _raise(own))).message


@pytest.mark.parametrize("method", ["legal", "takes_op"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (True, "answered True, which is neither a Refusal nor None"),
        ("no", "answered 'no', which is neither"),
        (Refusal("Not Kebab", "x"), "gave the code 'Not Kebab'; write it in kebab-case"),
        (Refusal("a", ""), "gave the detail '', which is no line of text"),
        (Refusal("a", "b\nc"), "gave the detail"),
        (Refusal("a", "b", {"n": float("nan")}), "gave the numbers {'n': nan}, which are not finite numbers"),
        (Refusal("a", "b", {1: 2}), "gave the numbers"),  # pyright: ignore[reportArgumentType]
        (Refusal("a", 3), "gave the detail 3"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_refusal_has_a_form(method: str, answer: Any, words: str, monkeypatch: pytest.MonkeyPatch):
    assert words in _fault(monkeypatch, _spoilt(**{method: lambda self, *_: answer})).message


def test_good_refusals_are_on_record(monkeypatch: pytest.MonkeyPatch):
    def legal(self: Any, candidate: DispatchCandidate) -> Refusal | None:
        return Refusal("alone", "one op each", {"ops": 2}) if len(candidate.members) > 1 else None

    def takes_op(self: Any, op: Operation, kind: Kind) -> Refusal | None:
        return Refusal("no-tanh", "no table") if any("tanh" in inner.name for inner in op.walk()) else None

    record = _compiled(monkeypatch, _spoilt(legal=legal, takes_op=takes_op)).record
    assert {(one.code, one.detail) for one in record.decisions if one.code == "target"} == {
        ("target", "alone: one op each")
    }
    assert [op.op_type for op in record.host_ops] == ["Tanh"] and "no table" in record.host_ops[0].reason


def _kernels(change: Any) -> Target:
    def compile_executables(self: Any, entries: Any, resources: Any, **_: Any) -> Any:
        return change([counted_kernel(entry, "mine", entry.sym_name.data) for entry in entries])

    return _spoilt(compile_executables=compile_executables)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda made: None, "answered None, which is no list of kernels"),
        (lambda made: "kernels", "answered 'kernels', which is no list"),
        (lambda made: made[:-1], "kernels for"),
        (lambda made: [*made, made[0]], "kernels for"),
        (lambda made: ["code", *made[1:]], "answered 'code', which is no CompiledKernel, for @"),
        (lambda made: _with(made, symbol=""), "whose symbol is ''"),
        (lambda made: _with(made, symbol=3), "whose symbol is 3"),
        (lambda made: _with(made, object_code="text"), "whose object_code is 'text'"),
        (lambda made: _with(made, flops=-1), "whose flops is -1"),
        (lambda made: _with(made, bytes_read=0.5), "whose bytes_read is 0.5"),
        (lambda made: _with(made, workgroups=symbol("n", 1, 9)), "whose workgroups has the size n, which the entry"),
        (lambda made: _with(made, scratch_bytes=True), "whose scratch_bytes is True"),
        (lambda made: _with(made, in_place=[(0, 9)]), "that says (0, 9) is in place, of 1 results and"),
        (lambda made: _with(made, in_place=[3]), "that says 3 is in place"),
        (lambda made: _with(made, constant_layouts={7: None}), "that lays operand 7 of 2 out"),
        (lambda made: _with(made, extra_constants=["x"]), "whose extra_constants is ['x']"),
        (lambda made: _with(made, form="short"), "whose form is 'short'"),
        (lambda made: _with(made, arms=["arm"]), "with the arms ['arm']"),
        (lambda made: _with(made, arms=[KernelArm(replace(made[0], flops=-1, symbol=""), (), (), ())]), "in an arm"),
        (lambda made: _with(made, constant_layouts={0: "tiled"}), "that lays operand 0 of 2 out as 'tiled'"),
        (lambda made: _with(made, numbers=(0.5,)), "whose numbers is (0.5,)"),
    ],
)
def test_a_kernel_has_a_form(change: Any, words: str, monkeypatch: pytest.MonkeyPatch):
    error = _fault(monkeypatch, _kernels(change))
    assert error.message.startswith("compile_executables() answered") and words in error.message


@pytest.mark.parametrize("field", ["extra_constants", "in_place", "constant_layouts", "arms", "numbers"])
def test_a_field_that_cannot_be_looked_at_is_the_fault_of_the_target(field: str, monkeypatch: pytest.MonkeyPatch):
    error = _fault(monkeypatch, _kernels(lambda made: _with(made, **{field: 3})))
    assert error.message.startswith("compile_executables() ")


def _with(made: list[CompiledKernel], **fields: Any) -> list[CompiledKernel]:
    return [replace(made[0], **fields), *made[1:]]


def test_nothing_is_too_long_where_nothing_can_be_split(monkeypatch: pytest.MonkeyPatch):
    target = _kernels(lambda made: _with(made, too_long=True))
    error = _fault(monkeypatch, target, fusion="none")
    assert "too_long, where nothing can be split" in error.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "answered 3, which is neither a SharingPrice nor None"),
        (SharingPrice(-1, "x"), "gave the price -1 ns"),
        (SharingPrice(float("inf"), "x"), "gave the price inf ns"),
        (SharingPrice(1, ""), "gave the reason ''"),
    ],
)
def test_a_price_has_a_form(answer: Any, words: str):
    target = checked_target(_spoilt(sharing_price=lambda self, *_: answer), Origin("mine", "mine"))
    with pytest.raises(FuselineError) as caught:
        target.sharing_price(_entry(), None)  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "E0802" and words in caught.value.message


def _entry() -> FuncOp:
    from xdsl.dialects.builtin import FunctionType

    return FuncOp("entry", FunctionType.from_lists([], []))


def test_layouts_are_priced_or_refused():
    for answer, words in ((None, "answered None"), (Refusal("No", "x"), "gave the code 'No'"), (3, "answered 3")):
        target = checked_target(_spoilt(layout_price=lambda self, *_, a=answer: a), Origin("mine", "mine"))
        with pytest.raises(FuselineError) as caught:
            target.layout_price(_entry(), {})
        assert words in caught.value.message
    plain = checked_target(Mine(), Origin("mine", "mine"))
    assert isinstance(plain.layout_price(_entry(), {}), Refusal)
    with pytest.raises(FuselineError, match=r"E0802.*compile_reader\(\) of @entry raised NotImplementedError"):
        plain.compile_reader(_entry(), counted_kernel(_entry(), "a", "b"), {})


def test_code_is_printed_where_a_target_keeps_it(monkeypatch: pytest.MonkeyPatch):
    def keep_code(self: Any) -> None: ...

    def code_text(self: Any, headings: Any, form: str) -> str:
        return "\n".join(headings) if form == "asm" else _raise(NotImplementedError())

    checked = checked_target(_spoilt(keep_code=keep_code, code_text=code_text), Origin("mine", "mine"))
    monkeypatch.setattr("fuseline.targets.create_target", lambda *_: checked)
    assert "main_dispatch" in fuseline.api.emit(_model(), "asm", target="mine")
    with pytest.raises(FuselineError, match="E0501: the target mine has no code as llvm"):
        fuseline.api.emit(_model(), "llvm", target="mine")
    spoilt = checked_target(_spoilt(keep_code=keep_code, code_text=lambda *_: 3), Origin("mine", "mine"))
    monkeypatch.setattr("fuseline.targets.create_target", lambda *_: spoilt)
    with pytest.raises(FuselineError, match=r"E0802.*code_text\(\) answered 3, which is no text"):
        fuseline.api.emit(_model(), "asm", target="mine")


# what it says of itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (None, "its description is None, which is no TargetDescription"),
        (replace(GOOD, name=" "), "its description says name = ' '"),
        (replace(GOOD, threads=0), "its description says threads = 0, which is no whole number from 1 on"),
        (
            replace(GOOD, multiplies_bytes=1),  # pyright: ignore[reportArgumentType]
            "its description says multiplies_bytes = 1, which is neither True nor False",
        ),
        (replace(GOOD, binding_limit=2.5), "its description says binding_limit = 2.5"),  # pyright: ignore[reportArgumentType]
        (replace(GOOD, roots_limit=True), "its description says roots_limit = True"),
        (replace(GOOD, code_limit=-1), "its description says code_limit = -1, which is no whole number from 0 on"),
        (replace(GOOD, numerics="loose"), "its description says numerics = 'loose'"),
        (replace(GOOD, tile_multiples=(("OX", 4),)), "its description says tile_multiples = {'OX': 4}"),
        (replace(GOOD, tile_multiples=(("M", 0),)), "its description says tile_multiples = {'M': 0}"),
        (replace(GOOD, tile_multiples=(("M", 1 << 20),)), "its description says tile_multiples = {'M'"),
        (replace(GOOD, tile_multiples={"M": 4}), "its description says tile_multiples = {'M': 4}, which are no pairs"),  # pyright: ignore[reportArgumentType]
        (replace(GOOD, class_multiples=(("dense", ()),)), "its description says class_multiples = "),
        (replace(GOOD, class_multiples=(("depthwise", (("OC", -3),)),)), "its description says depthwise = {'OC': -3}"),
        (replace(GOOD, costs=None), "its description says costs = None"),  # pyright: ignore[reportArgumentType]
        (replace(GOOD, costs=MachineCosts(flops_per_ns=0)), "its description says costs.flops_per_ns = 0"),
        (replace(GOOD, costs=MachineCosts(launch_ns=float("nan"))), "its description says costs.launch_ns = nan"),
        (replace(GOOD, costs=MachineCosts(block_uses=1.5)), "its description says costs.block_uses = 1.5"),  # pyright: ignore[reportArgumentType]
        (replace(GOOD, costs=MachineCosts(flops_per_ns=1e30)), "its description says costs.flops_per_ns = 1e+30"),
        (replace(GOOD, rules=TargetRules(only=["a"])), "its description says rules.only = ['a']"),  # pyright: ignore[reportArgumentType]
        (replace(GOOD, rules=()), "its description says rules = ()"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_target_that_no_machine_is_is_refused(description: Any, words: str):
    with pytest.raises(FuselineError) as caught:
        checked_target(Mine(description), Origin("mine", "mine.py"))
    assert (caught.value.code, caught.value.node) == ("E0802", "mine, mine.py")
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"runs_programs": 1}, "runs_programs is 1, which is neither True nor False"),
        ({"makes_artifacts": None}, "makes_artifacts is None"),
        ({"suffix": "lst"}, "suffix is 'lst', which is none: write '.lst'"),
        ({"suffix": "./x"}, "suffix is './x'"),
        ({"suffix": None}, "suffix is None"),
        ({"suffix": ".onnx"}, "suffix is '.onnx', which other files have"),
        ({"suffix": ".bin"}, "suffix is '.bin', which other files have"),
    ],
)
def test_flags_and_suffixes_have_a_form(attributes: dict[str, Any], words: str):
    with pytest.raises(FuselineError) as caught:
        checked_target(_spoilt(**attributes), Origin("mine", "mine"))
    assert caught.value.code == "E0802" and words in caught.value.message


def test_a_target_without_its_methods_cannot_be_made(tmp_path: Path):
    path = tmp_path / "half.py"
    path.write_text(
        "from fuseline.targets.target import Target\nclass Half(Target):\n    contract = 1\n"
        "def create(variant, threads, numerics):\n    return Half()\n"
    )
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_model(), target=str(path))
    assert caught.value.code == "E0802" and "create() raised TypeError" in caught.value.message
    assert "assemble" in caught.value.message and caught.value.message.endswith("(at half.py:5)")


def test_a_description_that_raises_is_the_fault_of_the_target():
    class Lazy(Mine):
        @property
        def description(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
            raise RuntimeError("later")

        def __init__(self) -> None: ...

    with pytest.raises(FuselineError, match="E0802.*description raised RuntimeError: later"):
        checked_target(Lazy(), Origin("mine", "mine"))


def test_a_good_target_answers_through_the_check():
    checked = checked_target(InterpreterLike(), Origin("mine", "mine"))
    assert isinstance(checked, CheckedTarget) and checked.description is checked.target.description
    assert (checked.runs_programs, checked.makes_artifacts, checked.contract) == (True, False, CONTRACT)
    assert checked.description.name == "interpreter"


class InterpreterLike(InterpreterTarget):
    contract = CONTRACT
