"""JAX functions through fuseline: `fuseline.jax.compile(f, *args)` (docs/jax.md). Needs the extra `jax`.

>>> import fuseline.jax  # imports nothing of jax yet
"""

from __future__ import annotations

from fuseline.interop.jax_functions import CompiledFunction
from fuseline.interop.jax_functions import compile_function as compile

__all__ = ["CompiledFunction", "compile"]
