"""Choices from outside: every one that is offered computes what the interpreter does; what is not legal is refused with
its reason, and the kernel is the default's."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fuseline.ir.kernel_choice import Asked, KernelChoices, given_choices, parse_choice
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.contraction.chosen import block_counts
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.window.chosen import block_counts as window_block_counts
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.target import CpuTarget
from tests.draws import RNG
from tests.graphs.program import Program

from .choice_cases import CASES, ChoiceCase


@pytest.mark.parametrize("name", CASES)
def test_every_choice_that_is_offered_is_followed_and_right(name: str):
    case = CASES[name]()
    assert case.check({}).choice == ""
    offered = case.alternatives()
    assert offered
    for part, alternative in offered:
        plan = case.check({part.view.kernel_class: alternative.text})
        followed = {one.view.kernel_class: one.choice for one in plan.kernel_plans if one.choice}
        assert followed == {part.view.kernel_class: alternative.text}
        assert alternative.time > 0


@pytest.mark.parametrize("name", ["product", "product, i8", "rows at run time", "convolution", "computed image"])
def test_any_tile_with_any_blocks_that_is_followed_is_right(name: str):
    case = CASES[name]()
    lanes, followed = machine().lanes("f32"), 0
    for _ in range(40):  # draws, of which many fit no registers
        if followed == 3:
            break
        tile = f"tile={RNG.integers(1, 9)}x{RNG.integers(1, 4) * lanes}"
        plan = case.runner({case.view.kernel_class: tile}).plan
        if plan.choice:
            assert isinstance(plan, ContractionPlan)
            blocks = "x".join(str(RNG.integers(1, most, endpoint=True)) for most in block_counts(plan))
            text = f"{tile},blocks={blocks},order={RNG.choice(['rows', 'columns'])}"
            followed += case.check({case.view.kernel_class: text}).choice == text
    assert followed


@pytest.mark.parametrize("name", ["depthwise", "crowded depthwise", "maximum", "groups"])
def test_any_tile_of_a_window_with_any_blocks_that_is_followed_is_right(name: str):
    case = CASES[name]()
    lanes, followed = machine().lanes("f32"), 0
    for number in range(60):
        if number >= 5 and followed:
            break
        wide, image = RNG.integers(1, 4), RNG.choice(["", ",image=copied", ",image=stored"])
        tile = f"tile={RNG.integers(1, 12 // wide)}x{wide * lanes}{image}"
        plan = case.runner({case.view.kernel_class: tile}).plan
        if plan.choice:
            assert isinstance(plan, WindowPlan)
            lines, panels = (RNG.integers(1, most, endpoint=True) for most in window_block_counts(plan))
            text = f"{tile.partition(',')[0]},blocks={lines}x1x{panels}{image}"
            followed += case.check({case.view.kernel_class: text}).choice == text
    assert followed or name == "groups"


REFUSED: dict[str, tuple[str, str, str]] = {
    "a tile that does not fit the registers": ("product", "tile=31x{2}", "choice-tile"),
    "half a vector": ("product", "tile=4x{1/2}", "choice-tile"),
    "a tile longer than the rows": ("one row", "tile=2x{1}", "choice-tile"),
    "a tile wider than the columns": ("product, i8", "tile=1x{16}", "choice-tile"),
    "more panels than there are": ("product", "blocks=1x1x999", "choice-blocks"),
    "more lines than there are": ("product", "blocks=2x1x1", "choice-blocks"),
    "filtering of a product": ("product", "winograd=4", "choice-algorithm"),
    "filtering of a strided convolution": ("convolution", "winograd=4", "choice-algorithm"),
    "more outputs than are exact enough": ("filtered", "winograd=8", "choice-error-bound"),
    "outputs that no matrices are known for": ("filtered", "winograd=7", "choice-no-filtering"),
    "tiles larger than the image": ("filtered, one dimension", "winograd=4,blocks=999x32", "choice-blocks"),
    "a window with an order": ("depthwise", "order=rows", "choice-algorithm"),
    "filtering of a window": ("maximum", "winograd=4", "choice-algorithm"),
    "a window's tile that does not fit the registers": ("depthwise", "tile=12x{8}", "choice-tile"),
    "more pixels than are worth it": ("maximum", "tile=13x{1}", "choice-tile"),
    "more channels than there are": ("depthwise", "tile=1x{8}", "choice-tile"),
    "a copy for wide tiles": ("depthwise", "tile=2x{2},image=copied", "choice-image"),
    "groups without a copy": ("groups", "image=stored", "choice-image"),
    "groups in wide tiles": ("groups", "tile=4x{2}", "choice-tile"),
    "more lines of a window than there are": ("depthwise", "blocks=99x1x1", "choice-blocks"),
    "a copy of the rows of a product": ("product", "image=copied", "choice-algorithm"),
    "passes of half a panel": ("filtered", "winograd=4,blocks=4x7", "choice-blocks"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_legal_is_refused_and_the_default_is_taken(what: str):
    name, text, code = REFUSED[what]
    case, lanes = CASES[name](), machine().lanes("f64" if "f64" in name else "f32")
    for count in (1, 2, 8, 16):
        text = text.replace(f"{{{count}}}", str(count * lanes))
    text = text.replace("{1/2}", str(lanes // 2))
    assert parse_choice(text) is not None
    _check_refused(case, _asking(case, text), text, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (Asked("tile=4x16", stale="it was measured with other kernels"), "choice-stale"),
        (Asked("tile=four"), "choice-text"),
        (Asked("tile=4x16,winograd=4"), "choice-text"),
    ],
)
def test_what_cannot_be_read_or_is_stale_is_not_tried(asked: Asked, code: str):
    case = CASES["product"]()
    choices = KernelChoices(((case.view.kernel_class.rpartition(".")[2], asked),))
    _check_refused(case, Policy(choices=choices), asked.text, code)


def test_strict_numerics_filter_nothing_whatever_is_asked():
    case = CASES["filtered"]()
    asked = given_choices({case.view.kernel_class: "winograd=2"})
    for numerics, code in (("strict", "choice-exact-numerics"), ("default", "")):
        built = CpuTarget(threads=1, numerics=numerics).build(case.view.entry, Policy(numerics, choices=asked))
        assert (built.plan.unfollowed.why.code if built.plan.unfollowed else "") == code
        assert (built.family.name == "winograd") is (not code)


def test_a_filter_too_large_for_the_memory_is_refused():
    case = CASES["filtered"]()
    asked = given_choices({case.view.kernel_class: "winograd=6"})
    policy = Policy(filter_growth=2.0, choices=asked)
    _check_refused(case, policy, "winograd=6", "choice-memory", Policy(filter_growth=2.0))


def test_a_choice_that_no_family_has_is_refused():
    p = Program((7, 9))
    case = ChoiceCase(p.dispatch(p.relu(p.x[0])))
    _check_refused(case, _asking(case, "tile=4x16"), "tile=4x16", "choice-family")


def test_a_part_of_a_blocked_kernel_refuses_alone():
    case = CASES["two roots"]()
    plan = case.runner({}).plan
    assert isinstance(plan, BlockedPlan)
    parts = [part.view.kernel_class for part in plan.kernel_plans[1:]]
    found = case.check({parts[0]: "tile=1x16", parts[1]: "blocks=9x1x1"})
    assert [part.choice for part in found.kernel_plans[1:]][:1] == ["tile=1x16"]
    refused = [part.unfollowed for part in found.kernel_plans if part.unfollowed is not None]
    assert [(one.text, one.why.code) for one in refused] == [("blocks=9x1x1", "choice-blocks")]


def _asking(case: ChoiceCase, text: str) -> Policy:
    return Policy(choices=given_choices({case.view.kernel_class: text}))


def _check_refused(case: ChoiceCase, policy: Policy, text: str, code: str, default: Policy | None = None) -> None:
    """The choice is refused with a reason that names it, and the code is that of the default."""
    target = CpuTarget(threads=1)
    built, plain = target.build(case.view.entry, policy), target.build(case.view.entry, default or Policy())
    assert built.plan.unfollowed is not None and built.plan.choice == ""
    assert (built.plan.unfollowed.text, built.plan.unfollowed.why.code) == (text, code)
    assert built.plan.unfollowed.why.detail
    assert print_llvm([built.kernel], machine()) == print_llvm([plain.kernel], machine())


def test_classes_do_not_depend_on_names_and_weights_but_on_extents():
    def named(names: Mapping[int, str], rows: int) -> str:
        p = Program((rows, 9), (9, 30), constants=[1])
        view = p.dispatch(p.relu(p.matmul(p.x[0], p.x[1])))
        view.entry.properties["sym_name"] = type(view.entry.sym_name)(names[rows])
        return view.kernel_class

    assert named({7: "a"}, 7) == named({7: "b"}, 7) != named({8: "a"}, 8)
    assert named({7: "a"}, 7).startswith("contraction.")
