"""Short ways to write `linalg.generic` as text."""

from __future__ import annotations

from collections.abc import Sequence


def tensor(shape: Sequence[int | str], element: str = "f32") -> str:
    """The type of a tensor; a named size is `?`."""
    dims = "".join(f"{size}x" if isinstance(size, int) else "?x" for size in shape)
    return f"tensor<{dims}{element}>"


def argument(name: str, shape: Sequence[int | str], element: str = "f32") -> str:
    """A function argument, with its sizes' names where it has any."""
    text = f"%{name}: {tensor(shape, element)}"
    if any(isinstance(size, str) for size in shape):
        text += " {fuseline.dims = [" + ", ".join(f'"{size}"' for size in shape) + "]}"
    return text


def function(
    arguments: Sequence[tuple[str, Sequence[int | str], str]],
    sizes: Sequence[str],
    body: str,
    results: Sequence[tuple[str, str]],
) -> str:
    """A function: `arguments` are (name, shape, element), `results` (value, type)."""
    parameters = [argument(*a) for a in arguments] + [f'%{s}: index {{fuseline.name = "{s}"}}' for s in sizes]
    types = ", ".join(t for _, t in results)
    values = ", ".join(v for v, _ in results)
    return f"func.func @f({', '.join(parameters)}) -> ({types}) {{\n{body}\nfunc.return {values} : {types}\n}}"


def empty(name: str, shape: Sequence[int | str], element: str = "f32") -> str:
    """A `tensor.empty`."""
    dynamic = ", ".join(f"%{size}" for size in shape if isinstance(size, str))
    return f"%{name} = tensor.empty({dynamic}) : {tensor(shape, element)}"


def fill(name: str, value: str, shape: Sequence[int | str], element: str = "f32") -> str:
    """An empty tensor filled with a constant."""
    lines = [
        empty(f"{name}_e", shape, element),
        f"%{name}_c = arith.constant {value}" + ("" if element == "i1" else f" : {element}"),
    ]
    type_ = tensor(shape, element)
    return "\n".join([*lines, f"%{name} = linalg.fill ins(%{name}_c : {element}) outs(%{name}_e : {type_}) -> {type_}"])


def generic(
    result: str,
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str]],
    maps: Sequence[str],
    iterators: str,
    body: str,
    yields: Sequence[tuple[str, str]],
) -> str:
    """A `linalg.generic`: operands are (value, type), `maps` right-hand sides such as `d0, d1`, iterators letters p and
    r.

    The body's arguments are `%i0, %i1, ..` and `%o0, ..`.
    """
    rank = len(iterators)
    dims = ", ".join(f"d{i}" for i in range(rank))
    affine = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    kinds = ", ".join('"parallel"' if letter == "p" else '"reduction"' for letter in iterators)
    elements = [f"%i{i}: {_element(t)}" for i, (_, t) in enumerate(inputs)] + [
        f"%o{i}: {_element(t)}" for i, (_, t) in enumerate(outputs)
    ]
    ins = f"ins({', '.join(v for v, _ in inputs)} : {', '.join(t for _, t in inputs)}) " if inputs else ""
    outs = f"outs({', '.join(v for v, _ in outputs)} : {', '.join(t for _, t in outputs)})"
    types = ", ".join(t for _, t in outputs)
    names = ", ".join(v for v, _ in yields)
    kinds_of = ", ".join(t for _, t in yields)
    return (
        f"{result} = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}} {ins}{outs} {{\n"
        f"^bb0({', '.join(elements)}):\n{body}\nlinalg.yield {names} : {kinds_of}\n}} -> {types}"
    )


def _element(type_: str) -> str:
    return type_[type_.rindex("x") + 1 : -1] if "x" in type_ else type_[len("tensor<") : -1]
