"""JAX, the way the laboratory uses it: loaded when first needed, in double precision. PyTorch only where the user brings it."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def double_precision_jax() -> ModuleType:
    """The module `jax` with 64-bit floats switched on; every number of the laboratory is one.

    >>> jax = double_precision_jax()
    >>> float(jax.grad(lambda x: x**3)(2.0))
    12.0
    >>> str(jax.numpy.zeros(1).dtype)
    'float64'
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    return jax


def is_torch_module(model: Any) -> bool:
    """Whether this is a `torch.nn.Module`, found out without importing PyTorch.

    >>> is_torch_module({"weights": [1.0]})
    False
    """
    return any(kind.__module__.startswith("torch.") and kind.__name__ == "Module" for kind in type(model).__mro__)
