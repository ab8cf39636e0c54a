"""Elementwise, broadcasting, transposing and bordered dispatches on odd sizes."""

from __future__ import annotations

import pytest

from .generics import argument, empty, fill, function, generic, tensor
from .texts import check

ADD = ("%s = arith.addf %i0, %i1 : f32", [("%s", "f32")])
GELU = """%h = arith.constant 0.707106781 : f32
%t = arith.mulf %i0, %h : f32
%w = math.erf %t : f32
%o = arith.constant 1.0 : f32
%q = arith.addf %w, %o : f32
%r = arith.mulf %i0, %q : f32"""


def unary(shape: tuple[int | str, ...], body: str, result: str, element: str = "f32", out: str = "") -> str:
    """A function that maps every element of one argument."""
    out = out or element
    t, u = tensor(shape, element), tensor(shape, out)
    identity = ", ".join(f"d{i}" for i in range(len(shape)))
    op = generic("%y", [("%x", t)], [("%e", u)], [identity, identity], "p" * len(shape), body, [(result, out)])
    names = sorted({s for s in shape if isinstance(s, str)})
    return function([("x", shape, element)], names, empty("e", shape, out) + "\n" + op, [("%y", u)])


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (33,), (3, 5), (2, 3, 4, 5), (1, 40), (5000,), (70, 130), ()])
def test_flat(shape: tuple[int, ...]) -> None:
    check(unary(shape, GELU, "%r"), family="elementwise")


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 3, "m": 17}, {"n": 64, "m": 100}])
def test_dynamic(sizes: dict[str, int]) -> None:
    check(unary(("n", 3, "m"), GELU, "%r"), sizes=sizes)


@pytest.mark.parametrize("maps", ["d1", "d0", "d0, d1", "", "d1, d0"])
@pytest.mark.parametrize("shape", [(3, 8), (5, 19), (1, 9), (9, 1)])
def test_broadcast(maps: str, shape: tuple[int, int]) -> None:
    chosen = [int(d.strip()[1]) for d in maps.split(",") if d.strip()]
    small = tuple(shape[d] for d in chosen)
    ts, t = tensor(small), tensor(shape)
    op = generic("%y", [("%a", ts), ("%b", t)], [("%e", t)], [maps, "d0, d1", "d0, d1"], "pp", ADD[0], ADD[1])
    check(function([("a", small, "f32"), ("b", shape, "f32")], [], empty("e", shape) + "\n" + op, [("%y", t)]))


def test_broadcast_of_size_one() -> None:
    t, s = tensor((4, 9)), tensor((4, 1))
    op = generic("%y", [("%a", s), ("%b", t)], [("%e", t)], ["d0, 0", "d0, d1", "d0, d1"], "pp", ADD[0], ADD[1])
    check(function([("a", (4, 1), "f32"), ("b", (4, 9), "f32")], [], empty("e", (4, 9)) + "\n" + op, [("%y", t)]))


@pytest.mark.parametrize("maps", ["d1, d0, d2", "d2, d1, d0", "d0, d2, d1", "d1, d2, d0"])
def test_transpose(maps: str) -> None:
    shape = (9, 5, 18)
    source = tuple(shape[int(d.strip()[1])] for d in maps.split(","))
    op = generic(
        "%y", [("%x", tensor(source))], [("%e", tensor(shape))], [maps, "d0, d1, d2"], "ppp", "", [("%i0", "f32")]
    )
    check(function([("x", source, "f32")], [], empty("e", shape) + "\n" + op, [("%y", tensor(shape))]))


@pytest.mark.parametrize(
    ("low", "high"), [((0, 1, 1, 0), (0, 2, 0, 0)), ((0, 0, 0, 3), (0, 0, 0, 9)), ((1, 2, 3, 4), (0, 1, 0, 1))]
)
def test_pad(low: tuple[int, ...], high: tuple[int, ...]) -> None:
    shape = (2, 3, 4, 10)
    out = tuple(a + s + b for a, s, b in zip(low, shape, high, strict=True))
    body = f"""%v = arith.constant 1.5 : f32
%y = tensor.pad %x low[{", ".join(map(str, low))}] high[{", ".join(map(str, high))}] {{
^bb0(%a: index, %b: index, %c: index, %d: index):
tensor.yield %v : f32
}} : {tensor(shape)} to {tensor(out)}"""
    check(function([("x", shape, "f32")], [], body, [("%y", tensor(out))]), family="elementwise")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("widths", [(1, 2), (8, 16), (3, 9, 5)])
def test_concat(axis: int, widths: tuple[int, ...]) -> None:
    shapes = [tuple(w if i == axis else s for i, s in enumerate((3, 4, 8))) for w in widths]
    out = tuple(sum(widths) if i == axis else s for i, s in enumerate((3, 4, 8)))
    names = ", ".join(f"%x{i}" for i in range(len(widths)))
    types = ", ".join(tensor(s) for s in shapes)
    body = f"%y = tensor.concat dim({axis}) {names} : ({types}) -> {tensor(out)}"
    check(function([(f"x{i}", s, "f32") for i, s in enumerate(shapes)], [], body, [("%y", tensor(out))]))


@pytest.mark.parametrize("widths", [(5, 14), (8, 16, 24), (16, 3, 1, 12), (8,) * 12])
def test_concat_inside(widths: tuple[int, ...]) -> None:
    """A concat that is read by another op is chosen run by run, and lane by lane across a border."""
    whole = tensor((3, sum(widths)))
    names, types = ", ".join(f"%x{i}" for i in range(len(widths))), ", ".join(tensor((3, width)) for width in widths)
    body = f"""%c = tensor.concat dim(1) {names} : ({types}) -> {whole}
{empty("e", (3, sum(widths)))}
{generic("%y", [("%c", whole)], [("%e", whole)], ["d0, d1", "d0, d1"], "pp", GELU, [("%r", "f32")])}"""
    check(function([(f"x{i}", (3, width), "f32") for i, width in enumerate(widths)], [], body, [("%y", whole)]))


@pytest.mark.parametrize("permutation", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_named_transpose(permutation: tuple[int, ...]) -> None:
    shape = (9, 5, 18)
    source = tuple(shape[permutation.index(i)] for i in range(3))
    op = (
        f"%y = linalg.transpose ins(%x : {tensor(source)}) outs(%e : {tensor(shape)}) permutation = {list(permutation)}"
    )
    check(function([("x", source, "f32")], [], empty("e", shape) + "\n" + op, [("%y", tensor(shape))]))


@pytest.mark.parametrize("element", ["f32", "f64", "i8"])
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_channels_last(channels: int, element: str) -> None:
    """Few channels, interleaved, and an epilogue that reads numbers per channel and an image that lies as the result
    does."""
    shape, source = (7, 9, channels), (channels, 7, 9)
    t, s, v = tensor(shape, element), tensor(source, element), tensor((channels,), element)
    add = "addf" if element[0] == "f" else "addi"
    body = f"%s = arith.{add} %i0, %i1 : {element}\n%t = arith.{add} %s, %i2 : {element}"
    maps = ["d2, d0, d1", "d2", "d0, d1, d2", "d0, d1, d2"]
    op = generic("%y", [("%x", s), ("%v", v), ("%z", t)], [("%e", t)], maps, "ppp", body, [("%t", element)])
    arguments = [("x", source, element), ("v", (channels,), element), ("z", shape, element)]
    check(function(arguments, [], empty("e", shape, element) + "\n" + op, [("%y", t)]))


@pytest.mark.parametrize("sizes", [{"h": 1, "w": 1}, {"h": 3, "w": 5}, {"h": 20, "w": 31}])
def test_channels_last_of_any_size(sizes: dict[str, int]) -> None:
    t, s = tensor(("h", "w", 3)), tensor((3, "h", "w"))
    op = generic("%y", [("%x", s)], [("%e", t)], ["d2, d0, d1", "d0, d1, d2"], "ppp", "", [("%i0", "f32")])
    check(
        function([("x", (3, "h", "w"), "f32")], ["h", "w"], empty("e", ("h", "w", 3)) + "\n" + op, [("%y", t)]),
        sizes=sizes,
    )


def test_many_pixels_of_three_channels() -> None:
    t, s = tensor((61, 67, 3)), tensor((3, 61, 67))
    op = generic("%y", [("%x", s)], [("%e", t)], ["d2, d0, d1", "d0, d1, d2"], "ppp", GELU, [("%r", "f32")])
    check(function([("x", (3, 61, 67), "f32")], [], empty("e", (61, 67, 3)) + "\n" + op, [("%y", t)]))


def test_upsampling_of_the_innermost_axis() -> None:
    t, s = tensor((6, 21, 2)), tensor((6, 21))
    op = generic("%y", [("%x", s)], [("%e", t)], ["d0, d1", "d0, d1, d2"], "ppp", "", [("%i0", "f32")])
    check(function([("x", (6, 21), "f32")], [], empty("e", (6, 21, 2)) + "\n" + op, [("%y", t)]))


@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("element", ["f32", "f64", "i8", "i1"])
def test_strides_up_to_the_last_element(stride: int, element: str) -> None:
    """What is picked from whole vectors ends with the buffer."""
    whole, part = tensor((2, 32 * stride + 1), element), tensor((2, 33), element)
    body = f"%y = tensor.extract_slice %x[0, 0] [2, 33] [1, {stride}] : {whole} to {part}"
    check(function([("x", (2, 32 * stride + 1), element)], [], body, [("%y", part)]))


@pytest.mark.parametrize(("offset", "stride"), [(0, 1), (3, 1), (1, 2)])
def test_slice(offset: int, stride: int) -> None:
    body = f"%y = tensor.extract_slice %x[1, {offset}] [2, 9] [1, {stride}] : {tensor((4, 30))} to {tensor((2, 9))}"
    check(function([("x", (4, 30), "f32")], [], body, [("%y", tensor((2, 9)))]))


def test_reshape_between() -> None:
    """A reshape between two ops whose rows do not hold whole vectors."""
    a, b = (4, 6), (3, 8)
    body = f"""{empty("e", a)}
{generic("%p", [("%x", tensor(a))], [("%e", tensor(a))], ["d0, d1", "d0, d1"], "pp", GELU, [("%r", "f32")])}
%f = tensor.collapse_shape %p [[0, 1]] : {tensor(a)} into {tensor((24,))}
%g = tensor.expand_shape %f [[0, 1]] output_shape [3, 8] : {tensor((24,))} into {tensor(b)}
{empty("e2", b)}
{generic("%y", [("%g", tensor(b)), ("%z", tensor(b))], [("%e2", tensor(b))], ["d0, d1"] * 3, "pp", ADD[0], ADD[1])}"""
    check(function([("x", a, "f32"), ("z", b, "f32")], [], body, [("%y", tensor(b))]))


def test_two_results_of_different_shapes() -> None:
    a = (5, 12)
    body = f"""{empty("e", a)}
{generic("%p", [("%x", tensor(a))], [("%e", tensor(a))], ["d0, d1", "d0, d1"], "pp", GELU, [("%r", "f32")])}
{empty("e2", (12, 5))}
{generic("%q", [("%p", tensor(a))], [("%e2", tensor((12, 5)))], ["d1, d0", "d0, d1"], "pp", "", [("%i0", "f32")])}"""
    check(function([("x", a, "f32")], [], body, [("%p", tensor(a)), ("%q", tensor((12, 5)))]))


def test_gather_rows() -> None:
    """An embedding: the row is a runtime index, clamped in the IR."""
    out = (7, 20)
    body = f"""{empty("e", out)}
{
        generic(
            "%y",
            [("%ids", tensor((7,), "i64"))],
            [("%e", tensor(out))],
            ["d0", "d0, d1"],
            "pp",
            '''%z = arith.constant 0 : i64
%m = arith.constant 4 : i64
%lo = arith.maxsi %i0, %z : i64
%in = arith.minsi %lo, %m : i64
%row = arith.index_cast %in : i64 to index
%col = linalg.index 1 : index
%v = tensor.extract %table[%row, %col] : tensor<5x20xf32>''',
            [("%v", "f32")],
        )
    }"""
    check(function([("ids", (7,), "i64"), ("table", (5, 20), "f32")], [], body, [("%y", tensor(out))]))


CASTS = [
    ("f32", "f16", "arith.truncf"),
    ("f16", "f32", "arith.extf"),
    ("f32", "bf16", "arith.truncf"),
    ("bf16", "f32", "arith.extf"),
    ("f32", "f64", "arith.extf"),
    ("f64", "f32", "arith.truncf"),
    ("i8", "i32", "arith.extsi"),
    ("i8", "f32", "arith.uitofp"),
    ("i32", "f32", "arith.sitofp"),
    ("i64", "f32", "arith.sitofp"),
    ("f32", "i32", "arith.fptosi"),
    ("f32", "i8", "arith.fptosi"),
    ("f32", "i64", "arith.fptosi"),
    ("i64", "i8", "arith.trunci"),
    ("i1", "f32", "arith.uitofp"),
    ("i1", "i64", "arith.extui"),
    ("i32", "i1", "arith.trunci"),
]


@pytest.mark.parametrize(("source", "target", "op"), CASTS)
@pytest.mark.parametrize("size", [3, 45])
def test_cast(source: str, target: str, op: str, size: int) -> None:
    check(unary((size,), f"%r = {op} %i0 : {source} to {target}", "%r", source, target), compiled=True)


INTEGER_OPS = (
    "addi subi muli divsi divui remsi remui floordivsi ceildivsi andi ori xori shli shrsi shrui maxsi minsi maxui minui"
).split()


@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
def test_integers(op: str, element: str) -> None:
    t = tensor((21,), element)
    shift = op.startswith("sh")
    amount = (
        f"%k = arith.constant 3 : {element}\n%s = arith.andi %i1, %k : {element}"
        if shift
        else f"%one = arith.constant 1 : {element}\n%s = arith.ori %i1, %one : {element}"
    )
    body = generic(
        "%y",
        [("%a", t), ("%b", t)],
        [("%e", t)],
        ["d0"] * 3,
        "p",
        f"{amount}\n%r = arith.{op} %i0, %s : {element}",
        [("%r", element)],
    )
    check(
        function(
            [("a", (21,), element), ("b", (21,), element)], [], empty("e", (21,), element) + "\n" + body, [("%y", t)]
        ),
        compiled=True,
    )


@pytest.mark.parametrize("op", ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi"])
def test_division_by_zero_does_not_trap(op: str) -> None:
    t = tensor((9,), "i32")
    body = generic(
        "%y",
        [("%a", t)],
        [("%e", t)],
        ["d0"] * 2,
        "p",
        f"%z = arith.subi %i0, %i0 : i32\n%q = arith.{op} %i0, %z : i32\n%r = arith.subi %q, %q : i32",
        [("%r", "i32")],
    )
    check(function([("a", (9,), "i32")], [], empty("e", (9,), "i32") + "\n" + body, [("%y", t)]), compiled=True)


def test_fill_is_written() -> None:
    check(function([], [], fill("y", "2.5", (3, 7)), [("%y", tensor((3, 7)))]))


def test_argument_is_returned() -> None:
    assert "%x" in argument("x", (3,))
    check(function([("x", (3, 7), "f32")], [], "", [("%x", tensor((3, 7)))]))


def test_an_argument_that_is_a_part_of_a_concat_and_read_elsewhere_by_another_part() -> None:
    """Rows beside their neighbours: the copy of the argument is written by all workgroups, so none may read it back."""
    pads = [("p", "[1, 0]", "low[0, 0] high[1, 0]"), ("q", "[0, 0]", "low[1, 0] high[0, 0]")]
    parts = "\n".join(
        f"""%s{name} = tensor.extract_slice %x{offset} [16, 24] [1, 1] : tensor<17x24xf32> to tensor<16x24xf32>
        %{name} = tensor.pad %s{name} {around} {{
        ^bb0(%i{name}: index, %j{name}: index):
          tensor.yield %z : f32
        }} : tensor<16x24xf32> to tensor<17x24xf32>"""
        for name, offset, around in pads
    )
    t = "tensor<17x24xf32>"
    text = (
        f"%z = arith.constant 0.0 : f32\n{parts}\n%y = tensor.concat dim(1) %p, %x, %q : ({t}, {t}, {t}) -> "
        f"tensor<17x72xf32>"
    )
    check(function([("x", (17, 24), "f32")], [], text, [("%y", "tensor<17x72xf32>")]))
