"""Computed sizes that are taken to be equal, and of which one is 1 when the program runs: onnxruntime's result for
every size that is legal, a code for every other one, from a second program."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline import compilation
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

ort = pytest.importorskip("onnxruntime")
errors = ort.capi.onnxruntime_pybind11_state

Array = NDArray[Any]
LENGTHS = range(6)
ZERO, END, STEP, AXES, ONE_AXIS = (np.array(v) for v in ([0], [99], [2], [0, 1], [0]))
EVEN = "(float[h, w] x) => (z) { half = Slice(x, zero, end, first, two) even = Concat<axis = 0>(half, half) %s }"
"""`even` has 2 * ceil(h / 2) rows: one row against two for h = 1."""
BODIES = {
    "one after the other": "a = Add(x, even) b = Sub(a, x) c = Relu(b) z = Mul(even, c)",
    "a choice": "no = Less(even, x) z = Where(no, x, even)",
    "the largest of three": "both = Concat<axis = 0>(even, even) z = Max(even, x, even)",
    "the other comes first": "a = Relu(x) z = Mul(even, a)",
    "one less than the other": (
        "a = Slice(x, ones, end, first) b = Slice(x, zero, end, first, two) c = Greater(a, none) z = Where(c, b, x)"
    ),
    "slopes": "z = PRelu(x, even)",
    "a shape": "s = Shape(even) z = Expand(x, s)",
    "batches": "l = Unsqueeze(x, last) r = Unsqueeze(even, middle) z = MatMul(l, r)",
    "a bias": "t = Transpose<perm = [1, 0]>(even) f = Slice(x, zero, one, ones) z = Gemm(even, t, f)",
    "a norm": (
        "m = ReduceMean<keepdims = 1>(x, ones) n = Mul(even, m) s = Softmax<axis = 0>(n) "
        "z = ReduceSum<keepdims = 0>(s, first)"
    ),
    "sums of products": 'z = Einsum<equation = "ij,ij->j">(x, even)',
    "of both axes": (
        "t = Slice(x, zero, end, ones, two) wide = Concat<axis = 1>(t, t) a = Mul(x, wide) z = Add(a, even)"
    ),
    "a constant follows": "a = Add(x, even) u = Unsqueeze(a, last) z = MatMul(u, weight)",
    "a loop": (
        "n = Constant<value_int = 3>() yes = Constant<value = bool {1}>() "
        "z = Loop(n, yes, even) <body = b (int64 i, bool go, float[p, q] s) => (bool on, float[p2, q2] total) "
        "{ on = Identity(go) total = Add(s, x) }>"
    ),
    "words": "a = Cast<to = 8>(x) b = Cast<to = 8>(even) e = Equal(a, b) z = Cast<to = 1>(e)",
}


def model(body: str) -> onnx.ModelProto:
    return onnx_model(
        EVEN % body,
        opset=19,
        zero=ZERO,
        end=END,
        two=STEP,
        first=ONE_AXIS,
        none=np.float32(0),
        ones=np.array([1]),
        one=np.array([1]),
        last=np.array([2]),
        middle=np.array([1]),
        weight=RNG.standard_normal((1, 64)).astype(np.float32),
    )


def floats(*sizes: int) -> Array:
    return RNG.standard_normal(sizes).astype(np.float32)


def answer(run: Any, feeds: dict[str, Array]) -> Array | None:
    """The first result; None where the sizes are refused."""
    try:
        return run(feeds)
    except FuselineError as error:
        assert error.code in ("E0203", "E0106") and error.node  # E0106: of an operator on the host
    except (errors.Fail, errors.InvalidArgument, errors.RuntimeException):
        pass
    return None


def compare(proto: onnx.ModelProto, target: str = "cpu") -> fuseline.CompiledModel:
    """The program, after every size was run against onnxruntime."""
    program = fuseline.compile(proto, threads=1, target=target)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    peer = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for rows in LENGTHS:
        for columns in LENGTHS:
            feeds = {"x": floats(rows, columns)}
            expected = answer(lambda feeds: peer.run(None, feeds)[0], feeds)
            found = answer(lambda feeds: next(iter(program.run(feeds).values())), feeds)
            assert (found is None) == (expected is None), (rows, columns)
            if found is not None and expected is not None:
                assert found.shape == expected.shape, (rows, columns)
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    return program


def has_fallback(program: fuseline.CompiledModel) -> bool:
    """Whether there is a second program, of which the record tells."""
    noted = any("a second program of" in note for note in program.record.notes)
    assert noted == (program.session.artifact.fallback is not None)
    return noted


@pytest.mark.parametrize("name", BODIES)
def test_every_legal_size_gives_onnxruntimes_result(name: str):
    program = compare(model(BODIES[name]))
    assert has_fallback(program) == (name != "words")
    assert (program.stats["host_ops"] > 0) == (name == "words")


@pytest.mark.parametrize("name", ["one after the other", "a shape", "batches"])
def test_the_interpreter_takes_the_same_sizes(name: str):
    assert has_fallback(compare(model(BODIES[name]), "interpreter"))


def extent(text: list[str], source: str, axis: int) -> str:
    """The name of a tensor with the elements of `source`, and of a random number of them along `axis`."""
    kind = RNG.choice(["as it is", "even", "by threes", "half", "below", "both halves", "first", "last"])
    name = f"v{len(text)}"
    take = f"{name}a = Slice({source}, {{}}, {{}}, axis{axis}, {{}}) ".format
    parts = {
        "as it is": f"{name} = Identity({source}) ",
        "even": take("zero", "end", "two") + f"{name} = Concat<axis = {axis}>({name}a, {name}a) ",
        "by threes": take("zero", "end", "three") + f"{name} = Concat<axis = {axis}>({name}a, {name}a, {name}a) ",
        "half": take("zero", "end", "two") + f"{name} = Identity({name}a) ",
        "below": take("one", "end", "two") + f"{name} = Concat<axis = {axis}>({name}a, {name}a) ",
        "both halves": (
            take("zero", "end", "two")
            + f"{name}b = Slice({source}, one, end, axis{axis}, two) {name} = Concat<axis = {axis}>({name}a, {name}b) "
        ),
        "first": take("zero", "two", "one") + f"{name} = Identity({name}a) ",
        "last": take("one", "end", "one") + f"{name} = Identity({name}a) ",
    }
    text.append(parts[kind])
    return name


JOINS = {
    "sum": "z = Add(p, q)",
    "largest": "z = Max(p, q, r)",
    "choice": "no = Less(r, none) z = Where(no, p, q)",
    "slopes": "z = PRelu(p, q)",
    "shape": "s = Shape(q) z = Expand(p, s)",
    "batches": "l = Unsqueeze(p, last) m = Unsqueeze(q, last) t = Transpose<perm = [0, 2, 1]>(m) z = MatMul(l, t)",
    "a bias": "t = Transpose<perm = [1, 0]>(q) z = Gemm(p, t, r)",
    "letters": 'z = Einsum<equation = "ij,ij->i">(p, q)',
    "chain": "a = Add(p, q) b = Mul(a, r) c = Relu(b) z = Sub(c, p)",
    "loop": BODIES["a loop"].replace("even", "p").replace("s, x", "s, q"),
}


def generated() -> onnx.ModelProto:
    """A random join of tensors with random sizes."""
    text: list[str] = []
    ends = [extent(text, extent(text, "x", 0), 1) for _ in range(3)]
    names = " ".join(f"{new} = Identity({old})" for new, old in zip("pqr", ends, strict=True))
    body = f"{''.join(text)} {names} {JOINS[RNG.choice(list(JOINS))]}"
    numbers = {"zero": 0, "one": 1, "two": 2, "three": 3, "end": 99, "axis0": 0, "axis1": 1, "last": 2}
    held = {name: np.array([value]) for name, value in numbers.items() if name in body}
    return onnx_model(f"(float[h, w] x) => (z) {{ {body} }}", held | {"none": np.float32(0)}, opset=19)


@pytest.mark.parametrize("number", range(3))
def test_generated_sizes(number: int):
    compare(generated())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_generated_sizes():
    for _ in range(100):
        compare(generated())


def test_ordinary_sizes_run_what_they_ran_before():
    proto = model(BODIES["one after the other"])
    program, bounded = fuseline.compile(proto, threads=1), fuseline.compile(proto, threads=1, shapes={"h": (2, 64)})
    assert has_fallback(program) and not has_fallback(bounded)
    assert program.stats["dispatches"] == bounded.stats["dispatches"]
    x = floats(4, 3)
    np.testing.assert_array_equal(program.run({"x": x})["z"], bounded.run({"x": x})["z"])


@pytest.mark.parametrize("lengths", [(4, 4), (2, 9)])
def test_sizes_that_cannot_be_1_alone_need_no_second_program(lengths: tuple[int, int]):
    shapes: dict[str, Any] = {"h": lengths}
    program = fuseline.compile(model(BODIES["slopes"]), threads=1, shapes=shapes)
    assert not has_fallback(program)


def test_what_is_no_broadcast_is_refused():
    program = fuseline.compile(model(BODIES["a choice"]), threads=1)
    with pytest.raises(FuselineError, match=r"E0203 .*sizes 3 and 4 must be equal here.*h = 3 .feed sizes .* equal.$"):
        program.run({"x": floats(3, 2)})


def test_where_no_second_program_can_be_compiled_the_way_out_is_to_compile_for_the_size(
    monkeypatch: pytest.MonkeyPatch,
):
    proto = model(BODIES["slopes"])
    with monkeypatch.context() as patch:
        patch.setattr(compilation, "_compile_fallback", _refused)
        program = fuseline.compile(proto, threads=1)
    assert "runs are refused, for: E0404" in program.record.notes[-1]
    with pytest.raises(FuselineError, match=r"E0203 .*sizes . and . must be equal here.*h = 1 .*--shape"):
        program.run({"x": floats(1, 2)})
    assert fuseline.compile(proto, threads=1, shapes={"h": 1}).run({"x": floats(1, 2)})["z"].shape == (2, 2)


def _refused(*_: Any) -> Any:
    raise FuselineError("E0404", "the code is too long")


def test_a_saved_program_has_both_and_its_weights_once(tmp_path: Any):
    proto = model(BODIES["a constant follows"])
    fuseline.compile(proto, threads=1).save(tmp_path / "m.fuse")
    program = fuseline.load(tmp_path / "m.fuse", verify=True)
    artifact = program.session.artifact
    assert [id(block) for block in artifact.fallback.constants] == [id(block) for block in artifact.constants] != []
    for rows in (1, 4):
        x = floats(rows, 3)
        even = np.concatenate([x[::2], x[::2]])
        weight = onnx.numpy_helper.to_array(next(t for t in proto.graph.initializer if t.name == "weight"))
        np.testing.assert_allclose(program.run({"x": x})["z"], (x + even)[..., None] @ weight, rtol=1e-4, atol=1e-4)


def test_a_size_that_the_run_learns_to_be_1():
    proto = onnx_model(
        "(float[n] x) => (z) { places = NonZero(x) t = Transpose<perm = [1, 0]>(places) f = GatherND(x, t) "
        "half = Slice(f, zero, end, zero, two) even = Concat<axis = 0>(half, half) z = Add(f, even) }",
        zero=np.array([0]),
        end=ZERO + 99,
        two=STEP,
    )
    for target in ("cpu", "interpreter"):
        program = fuseline.compile(proto, target=target, threads=1)
        assert has_fallback(program)
        for there in ([3.0], [0.0, 5.0, 0.0], [1.0, 0.0, 2.0], [0.0]):
            found = np.array([v for v in there if v], np.float32)
            even = np.concatenate([found[::2], found[::2]])
            np.testing.assert_array_equal(program.run({"x": np.array(there, np.float32)})["z"], found + even)
        with pytest.raises(FuselineError, match="E0203"):
            program.run({"x": np.ones(3, np.float32)})
