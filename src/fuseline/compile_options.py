"""What a user may choose of a compile, checked in one place: a wrong value is refused by the name it was given
under."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from fuseline.arguments import kernel_texts, mapping, names, nested, path_option, paths, thread_count, wrong
from fuseline.ir.fuel import Fuel
from fuseline.ir.kernel_choice import NO_CHOICES, KernelChoices, given_choices

Progress = Callable[[str, int, int], None]

CHOICES: dict[str, tuple[str, ...]] = {
    "dedup": ("none", "exact", "constants", "shapes"),
    "fusion": ("none", "default", "aggressive"),
    "numerics": ("strict", "default", "fast"),
    "weights": ("packed", "original"),
}
"""Options that are one word of a few."""


class CompileObserver(Protocol):
    """What is shown the programs of a compile: that of the model, its fallback, those of branches."""

    def target_made(self, target: Any) -> None:
        """A program is about to be compiled for `target` (`targets.target.Target`), one of its own."""
        ...

    def lowered(self, lowering: Any) -> None:
        """A program is finished (`lowering.Lowering`)."""
        ...


_FLAGS = ("plan_strict", "verify_each", "poison", "cache")


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """What a user may choose. Making one with a value that an option does not take raises FuselineError (E0501) naming
    the option.

    `shapes`: sizes by input or symbol name. `target`: a name or path, a variant behind a colon. `threads`: None for
    the processors this process may use. `dedup`: which dispatches share code, `none`, `exact`, `constants` or `shapes`.
    `numerics`: `strict`, `default` (within the stated error bounds) or `fast`. `fusion`: `none`, `default` or
    `aggressive`. `without_rules`: names of fusion rules and joins that are off. `passes`: a pipeline in place of the
    phases up to `fusion`; `pass_options`: options by the name of a pass. `plan_remarks`: what gave way of what the
    plan says beside groups. `emit`: a stage as text; `emit_dispatch`: the
    only dispatch whose code that is, by name or number. `weights`: whether an artifact holds them `packed`, or
    `original` and packs them when it is loaded. `kernels`: choices for kernels by the name of their class
    (docs/tuning.md); `tuned`: those that tuning records of machines like this one have, the user's own or those in a
    file, which whoever reads them puts into `recorded`. `progress(phase, done, total)` is called as work proceeds,
    `after_pass(place, module, context)` after each pass (`phase/name`) and, as `input`, before the first. `observer` is
    shown each program of a compile with its kernels and schedule. `fuel` limits
    optional decisions and notes those that were made. `poison` is for tests: the program overwrites memory that nothing
    needs any more after every step. `cache`: the finished program
    may come from the cache, and is kept there. `code_limits` is for compiles that start again: see
    `form-dispatch-regions`.
    """

    target: str = "cpu"
    threads: int | None = None
    shapes: Mapping[str, Any] | None = None
    dedup: str = "constants"
    plan: Path | None = None
    plan_strict: bool = False
    rules: Sequence[Path] = ()
    without_rules: Sequence[str] = ()
    passes: str | None = None
    fusion: str = "default"
    numerics: str = "default"
    weights: str = "packed"
    kernels: Mapping[str, str] = field(default_factory=dict[str, str])
    tuned: bool | Path = False
    recorded: KernelChoices = NO_CHOICES
    plan_remarks: Sequence[str] = ()
    emit: str | None = None
    emit_dispatch: str | None = None
    verify_each: bool = False
    poison: bool = False
    cache: bool = True
    progress: Progress | None = None
    after_pass: Callable[[str, Any, Any], object] | None = None
    observer: CompileObserver | None = None
    fuel: Fuel | None = None
    pass_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    code_limits: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        if not isinstance(cast(Any, self.target), str):
            raise wrong("target", self.target, "a name such as 'cpu' or 'interpreter'")
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise wrong(name, getattr(self, name), f"one of {', '.join(words)}")
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise wrong(name, getattr(self, name), "True or False")
        if self.passes is not None and not isinstance(cast(Any, self.passes), str):
            raise wrong("passes", self.passes, "the text of a pipeline, such as 'cleanup,fusion'")
        object.__setattr__(self, "pass_options", nested("pass_options", self.pass_options))
        if self.progress is not None and not callable(cast(Any, self.progress)):
            raise wrong("progress", self.progress, "a function of a phase, steps done and steps in all")
        if self.after_pass is not None and not callable(cast(Any, self.after_pass)):
            raise wrong("after_pass", self.after_pass, "a function of a pass's name, the module and its context")
        object.__setattr__(self, "kernels", kernel_texts("kernels", self.kernels))
        if not isinstance(self.tuned, bool):
            object.__setattr__(self, "tuned", path_option("tuned", self.tuned))
        object.__setattr__(self, "threads", thread_count(self.threads))
        object.__setattr__(self, "shapes", mapping("shapes", self.shapes))
        object.__setattr__(self, "plan", None if self.plan is None else path_option("plan", self.plan))
        object.__setattr__(self, "rules", paths("rules", self.rules))
        object.__setattr__(self, "without_rules", names("without_rules", self.without_rules))

    @property
    def choices(self) -> KernelChoices:
        """What is asked of kernels: by the user, and where that says nothing, by records."""
        return given_choices(self.kernels).over(self.recorded)
