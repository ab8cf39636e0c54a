"""The import layers of docs/map.md, enforced: every module's imports, read with ast, against the table below; and no
circle among modules.

Every import counts, also one inside a function or for a type checker only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

_LOW = (
    "timeline",
    "installed_entries",
    "errors",
    "border",
    "buffers",
    "executors",
    "scalar_code",
    "size_requirement",
    "weight_layouts",
    "report.records",
    "report.edge_counts",
    "report.launches",
    "version",
)
_MIDDLE = (*_LOW, "ir", "evaluation", "analysis", "dispatch", "program", "targets.target", "targets.compiled_kernel")
_HIGH = (*_MIDDLE, "arguments", "cache", "compile_options", "frontends", "passes", "targets", "runtime", "pipeline")
_COMPILE = (*_HIGH, "source_program", "phase_runner", "compilation", "emitted_stage")
_OF_API = (*_COMPILE, "gc_pause", "compiled_model", "report", "verify", "exports")

_RECORDED = ("tuning.trial", "tuning.machine_kind")

_DESCRIBED = ("targets.description_file", "targets.file_locations", "targets.dispatch_caps", "targets.caps_file")

# What each part may import besides itself. The longest prefix of a module's name picks its row.
ALLOWED: dict[str, tuple[str, ...]] = {
    "errors": (),
    "buffers": (),
    "executors": (),
    "scalar_code": (),
    "size_requirement": (),
    "version": (),
    "timeline": (),
    "installed_entries": (),
    "weight_layouts": ("errors",),
    "border": ("errors",),
    "cache": ("errors", "runtime", "compile_options"),
    "gc_pause": (),
    "arguments": ("errors", "runtime.abi", "ir.kernel_choice"),
    "compile_options": ("arguments", "ir.fuel", "ir.kernel_choice"),
    "report.records": (),
    "report.edge_counts": ("report.records",),
    "report.launches": ("report.records",),
    "report": ("errors",),
    "runtime": ("errors", "buffers", "executors", "scalar_code", "size_requirement", "weight_layouts"),
    "runtime.command": ("errors", "buffers", "executors", "scalar_code", "size_requirement", "border", "runtime"),
    "ir": _LOW,
    "ir.kernel_choice": (),
    "evaluation": (*_LOW, "ir"),
    "analysis": (*_LOW, "ir", "evaluation"),
    "dispatch": (*_LOW, "ir", "analysis"),
    "program": (*_LOW, "ir", "analysis", "dispatch"),
    "targets.compiled_kernel": (*_LOW, "ir", "dispatch", "program"),
    "targets.target": (*_LOW, "ir", "analysis", "dispatch", "program", "targets.compiled_kernel"),
    "targets.description_file": (*_LOW, "ir", "targets.file_locations"),
    "targets.file_locations": (),
    "targets.dispatch_caps": _MIDDLE,
    "targets.caps_file": ("errors", "targets.description_file", "targets.dispatch_caps", "targets.file_locations"),
    "targets.target_file": (*_LOW, "ir", *_DESCRIBED),
    "frontends": _MIDDLE,
    "passes": _MIDDLE,
    "targets.runtime_form": (*_MIDDLE, "runtime"),
    "targets.listed_program": ("buffers", "runtime"),
    "targets.cpu": (*_MIDDLE, "cache", "runtime", "targets.runtime_form", *_DESCRIBED, "targets.target_file"),
    "targets.interpreter": (*_MIDDLE, "runtime", "targets.runtime_form", "targets.null"),
    "targets.iree": (
        *_MIDDLE,
        "runtime",
        "targets.runtime_form",
        "targets.null",
        "targets.cpu.target",
    ),
    "targets.null": (
        *_MIDDLE,
        "runtime",
        "targets.runtime_form",
        "targets.listed_program",
        *_DESCRIBED,
        "targets.target_file",
    ),
    "targets.outside": (*_MIDDLE, "runtime", "targets.runtime_form", "targets.listed_program"),
    "targets": (*_MIDDLE, "runtime"),
    "branches": _HIGH,
    "fallback": _HIGH,
    "repeats": _HIGH,
    "lowering": (*_HIGH, "branches", "fallback", "repeats"),
    "code_listing": ("errors", "report.records", "targets.compiled_kernel", "targets.target"),
    "testing": (*_COMPILE, "api"),
    "emitted_stage": (*_MIDDLE, "compile_options", "passes.dispatch.open_regions", "runtime.files"),
    "pipeline": (*_HIGH, "lowering", "emitted_stage"),
    "source_program": _HIGH,
    "phase_runner": (*_HIGH, "source_program"),
    "compilation": (*_HIGH, "source_program", "phase_runner", "gc_pause", "lowering", "code_listing", "emitted_stage"),
    "tuning": (*_COMPILE, "report", "verify", "api", "call_options", "compiled_model"),
    "tuning.trial": (),
    "tuning.machine_kind": ("errors", "runtime", "targets.cpu.isa"),
    "tuning.records": (*_LOW, "ir.kernel_choice", "cache", "runtime", "targets.cpu.isa", *_RECORDED),
    "verify": (*_COMPILE, "lowering", "report"),
    "interop": (*_COMPILE, "report", "api", "call_options", "compiled_model"),
    "exports": (*_COMPILE, "gc_pause", "report"),
    "onnx_backend": ("interop", "border"),
    "jax": ("interop",),
    "compiled_model": ("errors", "border", "arguments", "runtime", "report", "passes.fusion.plan"),
    "call_options": ("arguments", "compile_options", "errors", "ir", "passes.fusion", "runtime", "tuning.records"),
    "api": (*_OF_API, "call_options", "interop.onnx_host", "interop.iree_host", "interop.repeated_texts"),
    "cluster": (*_OF_API, "tuning", "api"),
    "cli": (*_OF_API, "tuning", "cluster", "testing", "interop", "api", "call_options"),
    "__main__": ("cli",),
}

# Parts that may use only these third-party packages (besides the standard library).
THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "errors": (),
    "buffers": (),
    "executors": (),
    "scalar_code": (),
    "size_requirement": (),
    "weight_layouts": ("numpy",),
    # NumPy alone runs a program; ml_dtypes (bfloat16) and onnx (host ops) are imported only where a program needs them,
    # cryptography where a key is given.
    "runtime": ("numpy", "ml_dtypes", "onnx", "cryptography"),
    # A hit imports nothing of the compiler.
    "cache": ("platformdirs",),
    "report": ("msgspec", "rich", "jinja2", "pandas"),
}


def _under(module: str, part: str) -> bool:
    return module == part or module.startswith(part + ".")


def _part_of(module: str) -> str | None:
    return max((part for part in ALLOWED if _under(module, part)), key=len, default=None)


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _inside_problem(module: str, part: str, imported: str) -> str | None:
    target = _part_of(imported)
    if target is None:
        return None
    allowed = (part, *ALLOWED[part])
    if any(_under(imported, name) for name in allowed):
        return None
    return f"{module} imports fuseline.{imported}: {part} may import only {', '.join(sorted(allowed))}"


def problems(module: str, source: str) -> list[str]:
    """Every import of `module` (a dotted name inside fuseline) that its row of the tables does not allow."""
    part = _part_of(module)
    if part is None:
        return [f"{module} belongs to no layer"]
    found: list[str] = []
    outside = next((THIRD_PARTY[name] for name in THIRD_PARTY if _under(module, name)), None)
    for name in _imports(ast.parse(source)):
        top = name.partition(".")[0]
        if top == "fuseline":
            problem = _inside_problem(module, part, name.partition(".")[2])
            found += [problem] if problem else []
        elif outside is not None and top not in sys.stdlib_module_names and top not in outside:
            found.append(f"{module} imports {top}: {part} may use only {', '.join(outside) or 'the standard library'}")
    return found


def _modules() -> Iterator[tuple[str, Path]]:
    root = SOURCE / "fuseline"
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            yield name, path


def _module_of(name: str, modules: Mapping[str, str]) -> str | None:
    """The module that an imported name is, or lies in; None for one outside."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def circle(sources: Mapping[str, str]) -> str | None:
    """A circle of imports among modules, given as dotted name to source text; None where there is none."""
    found = {
        name: [_module_of(imported, sources) for imported in _imports(ast.parse(text))]
        for name, text in sources.items()
    }
    graph = TopologicalSorter(
        {name: [module for module in modules if module is not None] for name, modules in found.items()}
    )
    try:
        graph.prepare()
    except CycleError as error:
        return " is imported by ".join(error.args[1])
    return None


def test_no_module_imports_itself_through_others():
    sources = {f"fuseline.{name}": path.read_text() for name, path in _modules()}
    sources["fuseline"] = (SOURCE / "fuseline" / "__init__.py").read_text()
    assert (found := circle(sources)) is None, found


def test_no_import_is_relative():
    """A relative import would be seen by none of these tests."""
    found = [
        f"{name}:{node.lineno}"
        for name, path in _modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not found, found


@pytest.mark.parametrize(
    "sources",
    [
        {"f.a": "from f.b import B", "f.b": "from f.a import A"},
        {"f.a": "def work():\n    import f.b", "f.b": "from f import a"},
        {"f.a": "from f.b import B", "f.b": "if TYPE_CHECKING:\n    from f.c import C", "f.c": "from f.a import A"},
        {"f": "from f.a import A", "f.a": "from f import B"},
        {"f.a": "from f.a import A"},
    ],
)
def test_a_circle_is_named(sources: dict[str, str]):
    found = circle({**sources, "f.beside": "from f.a import A\nimport numpy"})
    assert found is not None
    first, *others = found.split(" is imported by ")
    assert sorted(others) == sorted(sources) and first == others[-1]


def test_a_tree_of_imports_is_no_circle():
    assert (
        circle(
            {
                "f": "from f.a import A",
                "f.a": "from f.b import c\nimport numpy",
                "f.b": "",
                "f.b.c": "from f.b import B",
            }
        )
        is None
    )


def test_every_module_keeps_to_its_layer():
    found = [problem for name, path in _modules() for problem in problems(name, path.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("passes.layout.fold_unit_dims", "from fuseline.targets.cpu import compile", "passes may import only"),
        ("passes.layout.fold_unit_dims", "def f():\n    import fuseline.pipeline", "passes may import only"),
        ("analysis.liveness", "from fuseline.passes import registry", "analysis may import only"),
        ("ir.build", "from fuseline.report import text", "ir may import only"),
        ("report.text", "import numpy", "report may use only"),
        ("report.text", "from fuseline.ir.dim import Dim", "report may import only"),
        ("runtime.loader", "import llvmlite.binding", "runtime may use only numpy"),
        ("runtime.loader", "from fuseline.report.records import decode", "runtime may import only"),
        (
            "targets.interpreter.target",
            "from fuseline.targets.cpu.isa import avx2",
            "targets.interpreter may import only",
        ),
        ("surprise", "", "belongs to no layer"),
    ],
)
def test_a_forbidden_import_is_named(module: str, source: str, reason: str):
    assert any(reason in problem for problem in problems(module, source)), problems(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("passes.layout.fold_unit_dims", "from fuseline.targets.target import TargetDescription"),
        ("ir.context", "from fuseline.report.records import CompileRecord"),
        ("targets.cpu.compile", "from fuseline.targets.cpu.isa import avx2"),
        ("runtime.loader", "import mmap, numpy as np\nfrom fuseline.errors import FuselineError"),
        ("cli.run", "from fuseline.api import load"),
    ],
)
def test_a_downward_import_passes(module: str, source: str):
    assert problems(module, source) == []
