"""Which softmaxes may be met block by block, and which may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from xdsl.ir import Operation

from fuseline.analysis.near_softmax import near_online_softmaxes
from fuseline.analysis.online_softmax import OnlineSoftmax, online_softmaxes
from fuseline.analysis.structured import StructuredOp, is_generic
from tests.unit.targets.cpu.nests.generics import empty, fill, function, generic, tensor
from tests.unit.targets.cpu.nests.texts import parse

SIZE = 6
T, R = tensor((SIZE, SIZE)), tensor((SIZE,))
FLAGS = tensor((SIZE, SIZE), "i1")
SQUARES = "%w = arith.mulf %i0, %i0 : f32\n%v = arith.addf %o0, %w : f32"
SUB, EXP = "%v = arith.subf %i0, %i1 : f32", "%v = math.exp %i0 : f32"
BOTH = "%d = arith.subf %i0, %i1 : f32\n%v = math.exp %d : f32"
MULTIPLY_ADD = "%w = arith.mulf %i0, %i1 : f32\n%v = arith.addf %o0, %w : f32"


@dataclass(frozen=True)
class Text:
    """A softmax of %x and its product with %b, with parts to change; all tensors are square, so that any map fits."""

    top: str = "maximumf"
    start: str = "0xFF800000"
    top_kinds: str = "pr"
    of: str = "%x"
    shift: str = BOTH
    split: str = ""
    row: str = "d0"
    zero: str = "0.0"
    kept: str = "d0"
    divide: str = "%v = arith.divf %i0, %i1 : f32"
    divided_by: str = "d0"
    weigh: str = ""
    factor: str = ""
    again: str = ""
    nan: str = "%v = arith.cmpf uno, %i0, %i0 : f32"
    choose: str = ""
    init: str = "0.0"
    product: str = "d0, d2"
    body: str = MULTIPLY_ADD
    results: tuple[str, ...] = ("%o",)

    def chains(self) -> list[OnlineSoftmax]:
        """What is found."""
        return online_softmaxes(self.ops())

    def near(self, dtype: str = "f32") -> list[str]:
        """What is missing of what is nearly found."""
        ops = self.ops(dtype)
        streaming = {op for chain in online_softmaxes(ops) for op in chain.reductions}
        return [near.missing for near in near_online_softmaxes(op for op in ops if op not in streaming)]

    def ops(self, dtype: str = "f32") -> Sequence[Operation]:
        """The ops of the program."""
        one, last = [("%v", "f32")], "%y"
        whole = ["d0, d1", "d0, d1"]
        text = [
            empty("e", (SIZE, SIZE)),
            f"%flags = tensor.empty() : {FLAGS}",
            fill("lo", self.start, (SIZE,)),
            fill("z", self.zero, (SIZE,)),
            fill("zz", self.init, (SIZE, SIZE)),
            generic(
                "%m",
                [(self.of, T)],
                [("%lo", R)],
                ["d0, d1", "d0"],
                self.top_kinds,
                f"%v = arith.{self.top} %i0, %o0 : f32",
                one,
            ),
            generic("%p", [("%x", T), ("%m", R)], [("%e", T)], ["d0, d1", self.row, "d0, d1"], "pp", self.shift, one),
        ]
        powers = "%p"
        if self.split:
            text.append(generic("%q", [("%p", T)], [("%e", T)], whole, "pp", self.split, one))
            powers = "%q"
        kinds = "pr" if self.kept == "d0" else "rp"
        text.append(
            generic(
                "%s", [(powers, T)], [("%z", R)], ["d0, d1", self.kept], kinds, "%v = arith.addf %i0, %o0 : f32", one
            )
        )
        total = "%s"
        if self.factor:
            text.append(generic("%f", [("%s", R)], [("%z", R)], ["d0", "d0"], "p", self.factor, one))
            total = "%f"
        text.append(
            generic(
                "%y",
                [(powers, T), (total, R)],
                [("%e", T)],
                ["d0, d1", self.divided_by, "d0, d1"],
                "pp",
                self.divide,
                one,
            )
        )
        if self.weigh:
            text.append(generic("%u", [(last, T), ("%a", T)], [("%e", T)], ["d0, d1"] * 3, "pp", self.weigh, one))
            last = "%u"
        if self.again:
            maps = ["d0, d1", "d0", "d0, d1"]
            text.append(generic("%g", [(last, T), ("%s", R)], [("%e", T)], maps, "pp", self.again, one))
            last = "%g"
        if self.choose:
            text.append(generic("%n", [(last, T)], [("%flags", FLAGS)], whole, "pp", self.nan, [("%v", "i1")]))
            text.append(generic("%c", [("%n", FLAGS), (last, T)], [("%e", T)], ["d0, d1"] * 3, "pp", self.choose, one))
            last = "%c"
        text.append(
            generic(
                "%o", [(last, T), ("%b", T)], [("%zz", T)], [self.product, "d2, d1", "d0, d1"], "ppr", self.body, one
            )
        )
        types = {"%m": R, "%s": R}
        arguments = [(name, (SIZE, SIZE), "f32") for name in ("x", "a", "b")]
        returned = [(name, types.get(name, T)) for name in self.results]
        return parse(function(arguments, [], "\n".join(text), returned).replace("f32", dtype)).members


CHOOSE = "%k = arith.constant 0.0 : f32\n%v = arith.select %i0, %k, %i1 : f32"


def test_a_softmax_and_its_product():
    (chain,) = Text().chains()
    assert len(chain.ops) == 5 and len(chain.deferred) == 1
    assert [(StructuredOp(op).iterators[loop], op is chain.exponentials[0]) for op, loop in chain.loops] == [
        ("reduction", False)
    ] * 3 + [("parallel", True)]


@pytest.mark.parametrize(("text", "ops", "deferred"), [
    (Text(top="maxnumf"), 5, 1),
    (Text(shift=SUB, split=EXP), 6, 1),
    (Text(divide="%k = arith.constant 1.0 : f32\n%r = arith.divf %k, %i1 : f32\n%v = arith.mulf %i0, %r : f32"), 5, 1),
    (Text(weigh="%v = arith.mulf %i0, %i1 : f32"), 6, 1),
    (Text(weigh="%n = arith.negf %i0 : f32\n%v = arith.divf %n, %i1 : f32"), 6, 1),
    (Text(choose=CHOOSE), 7, 2),
    (Text(factor="%k = arith.constant 1.0 : f32\n%v = arith.divf %k, %i0 : f32",
          divide="%v = arith.mulf %i0, %i1 : f32"), 6, 1),
    (Text(choose=CHOOSE, nan="%v = arith.cmpf une, %i0, %i0 : f32"), 7, 2),
    (Text(results=("%o", "%s")), 5, 1),
])  # fmt: skip
def test_ways_to_write_it(text: Text, ops: int, deferred: int):
    (chain,) = text.chains()
    assert (len(chain.ops), len(chain.deferred)) == (ops, deferred)


TEXT = Text()


@pytest.mark.parametrize("text", [
    replace(TEXT, top="minimumf"),
    replace(TEXT, start="0.0"),
    replace(TEXT, top_kinds="rr"),
    replace(TEXT, of="%a"),
    replace(TEXT, shift="%d = arith.subf %i1, %i0 : f32\n%v = math.exp %d : f32"),
    replace(TEXT, shift="%d = arith.addf %i0, %i1 : f32\n%v = math.exp %d : f32"),
    replace(TEXT, shift="%d = arith.subf %i0, %i1 : f32\n%k = math.exp %d : f32\n%v = arith.addf %k, %k : f32"),
    replace(TEXT, shift=SUB, split="%v = math.exp2 %i0 : f32"),
    replace(TEXT, shift=SUB, split="%k = arith.addf %i0, %i0 : f32\n%v = math.exp %k : f32"),
    replace(TEXT, row="d1"),
    replace(TEXT, zero="1.0"),
    replace(TEXT, kept="d1"),
    replace(TEXT, divided_by="d1"),
    replace(TEXT, divide="%v = arith.divf %i1, %i0 : f32"),
    replace(TEXT, divide="%v = arith.addf %i0, %i1 : f32"),
    replace(TEXT, divide="%w = arith.mulf %i0, %i0 : f32\n%v = arith.divf %w, %i1 : f32"),
    replace(TEXT, weigh="%v = arith.addf %i0, %i1 : f32"),
    replace(TEXT, weigh="%v = arith.divf %i1, %i0 : f32"),
    replace(TEXT, weigh="%w = math.exp %i0 : f32\n%v = arith.mulf %i1, %w : f32"),
    replace(TEXT, choose="%k = arith.constant 1.0 : f32\n%v = arith.select %i0, %k, %i1 : f32"),
    replace(TEXT, choose="%k = arith.constant 0.0 : f32\n%v = arith.select %i0, %i1, %k : f32"),
    replace(TEXT, choose=CHOOSE, nan="%v = arith.cmpf ord, %i0, %i0 : f32"),
    replace(TEXT, choose=CHOOSE, nan="%k = arith.constant 1.0 : f32\n%v = arith.cmpf uno, %i0, %k : f32"),
    replace(TEXT, choose=CHOOSE, weigh="%v = arith.mulf %i0, %i1 : f32"),
    replace(TEXT, factor="%v = arith.negf %i0 : f32", divided_by="d1"),
    replace(TEXT, init="1.0"),
    replace(TEXT, product="d2, d0"),
    replace(TEXT, body="%w = arith.addf %i0, %i1 : f32\n%v = arith.addf %o0, %w : f32"),
    replace(TEXT, body=SQUARES),
    replace(TEXT, results=("%o", "%m")),
    replace(TEXT, results=("%o", "%p")),
    replace(TEXT, results=("%o", "%y")),
])  # fmt: skip
def test_what_is_none(text: Text):
    assert text.chains() == []


@pytest.mark.parametrize(
    ("text", "dtype", "missing"),
    [
        (Text(start="0.0"), "f32", "the maximum does not start from minus infinity"),
        (Text(start="0xFC00"), "f16", "its elements are f16"),
        (Text(results=("%o", "%m")), "f32", "something else reads the maximum"),
        (Text(results=("%o", "%y")), "f32", "something needs the weights as a whole"),
        (Text(weigh="%v = arith.addf %i0, %i1 : f32"), "f32", "what is done to the weights is no factor"),
        (Text(weigh="%v = arith.mulf %i0, %i1 : f32", choose=CHOOSE), "f32", "several ops read the weights"),
        (Text(init="1.0"), "f32", "the product does not begin at 0"),
        (Text(body=SQUARES), "f32", "the product is of the weights with themselves"),
        (Text(choose=CHOOSE, init="1.0"), "f32", "the product does not begin at 0"),
        (Text(again="%v = arith.divf %i0, %i1 : f32", init="1.0"), "f32", "the product does not begin at 0"),
        (Text(again="%v = arith.addf %i0, %i1 : f32"), "f32", "what is done to the weights is no factor"),
    ],
)
def test_what_is_nearly_one_says_what_is_missing(text: Text, dtype: str, missing: str):
    assert text.near(dtype)[0].startswith(missing) and len(text.near(dtype)) == 1


def test_a_near_one_names_its_maximum_and_its_product():
    ops = Text(init="1.0").ops()
    (near,) = near_online_softmaxes(ops)
    reducing = [op for op in ops if is_generic(op) and StructuredOp(op).reduction]
    assert (near.maximum, near.product) == (reducing[0], reducing[2])


@pytest.mark.parametrize("text", [Text(), Text(zero="1.0"), Text(top="minimumf"), Text(shift=SUB)])
def test_what_is_one_or_no_softmax_at_all_says_nothing(text: Text):
    assert text.near() == []


def test_a_softmax_without_a_product_says_nothing():
    assert Text(body="%w = arith.addf %i0, %i1 : f32\n%v = arith.addf %o0, %w : f32").near() == []
