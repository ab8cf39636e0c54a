"""Convolutions: direct, over any number of spatial dimensions, with stride, dilation, groups, and padding read in
place.

    out[batch, pixel, channel] += image[batch, pixel * stride + window * dilation - low, input channel] * filter[window,
    input channel, channel]

The same register tiles as a contraction: rows are neighbouring output pixels of a line, columns output channels, the
reduction runs over the window and the input channels. Pixels in the padding are read from the padding row, which holds
pad values; window rows in the padding are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from fuseline.analysis.indexing_maps import is_projected_permutation
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.chosen import contraction_alternatives, plan_chosen
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.kernel import ContractionKernel
from fuseline.targets.cpu.families.contraction.loops import contraction_loops
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.shared_plan import likeness, shared_plans
from fuseline.targets.cpu.families.family import Alternative, Family, Plan, Refusal, Shared
from fuseline.targets.cpu.isa.description import Machine


class ConvolutionFamily(Family):
    """Takes every f32 or f64 convolution with output channels of its own, in any memory order of its operands."""

    name = "convolution"
    kernel_type = ContractionKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root convolves."""
        root = view.root_view
        if root is None or kind(root.op) is not Kind.CONVOLUTION:
            return Refusal("not-a-convolution", "the root is no convolution")
        image = next(i for i, map_ in enumerate(root.input_maps) if not is_projected_permutation(map_))
        loops = contraction_loops(view, image=image, threads=self.policy.threads)
        return loops if isinstance(loops, Refusal) else plan_chosen(loops, machine, self.policy.choice(view))

    def alternatives(self, plan: Plan, machine: Machine) -> Iterator[Alternative]:
        """Other tiles and blocks of a direct convolution."""
        if isinstance(plan, ContractionPlan) and kind(plan.loops.root.op) is Kind.CONVOLUTION:
            yield from contraction_alternatives(plan, machine)

    @property
    def kernels(self) -> str:
        """Those of contractions."""
        return ContractionFamily.name

    def likeness(self, plan: Plan, numbers: AttributeNumbers) -> Hashable:
        """Equal up to extents, and to how far apart rows are."""
        assert isinstance(plan, ContractionPlan)
        return likeness(plan, numbers)

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans with tiles and partial sums in common."""
        return shared_plans([plan for plan in plans if isinstance(plan, ContractionPlan)], machine)


EXPORT = ConvolutionFamily
