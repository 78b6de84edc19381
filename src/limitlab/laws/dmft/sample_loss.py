"""The type of a parameter that is the loss of one sample, a name or a function L(r, w, e) of prediction, truth and label noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import user_line
from limitlab.laws.dmft._losses import LOSSES, Loss, loss_from_function
from limitlab.models.functions import FunctionParameter, record

Floats = NDArray[np.float64]

SAMPLES = 40
"""Random samples at which a function is evaluated to check and identify it."""

JUMP = 1e3
"""Slope in r, relative to the size of the loss, above which the loss itself counts as discontinuous."""


class SampleLoss(FunctionParameter):
    """The loss of one sample as a function of prediction r, truth w and label noise e, or the name of such a loss.

    Parameters
    ----------
    given
        A name, or a function L(r, w, e). For one neuron its arguments are numbers, or arrays of numbers of equal shape. For several neurons
        r has one entry per neuron along its first axis, and w one entry per direction of the truth.

    Notes
    -----
    A function written with `jax.numpy` is differentiated by JAX. Every other function is called with arrays of samples, and differentiated
    by differences. L must be continuous in r. Its derivative may jump, and labels may jump in w.

    Examples
    --------
    >>> SampleLoss("hinge").name
    'hinge'
    >>> SampleLoss(lambda r, w, e: np.abs(r - w - e)).of(1).first(np.array([[2.0]]), np.zeros((1, 1)), np.zeros(1)).round(6)
    array([[1.]])
    >>> SampleLoss("hing")
    Traceback (most recent call last):
        ...
    limitlab.models.functions.FunctionError: loss = 'hing' is not allowed: unknown loss, did you mean 'hinge'?
    """

    KIND = "loss"
    MUST_BE = "a name or a function of prediction r, truth w and noise e"

    def __init__(self, given: Any):
        self.function: Callable[[Any, Any, Any], Any] | None = None
        if isinstance(given, SampleLoss):
            self.__dict__.update(given.__dict__)
            return
        if isinstance(given, str):
            self.name = self.checked_name(given)
        elif callable(given):
            self.function = given
            self.name = record(given, *_fingerprints(given))
        else:
            raise self.refusal(given)
        self._key = (self.name, self.function)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the valid names."""
        return (*LOSSES, "committee")

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed."""
        return self.name if self.function is None else self.function

    def __reduce__(self) -> tuple[Any, ...]:
        return SampleLoss, (self.given,)

    def of(self, width: int) -> Loss:
        """Return the loss of a function of the user for this number of neurons, as a loss of vectors with its derivatives."""
        return _checked(self, width)


@lru_cache(maxsize=64)
def _checked(loss: SampleLoss, width: int) -> Loss:
    """Return the loss after a check that it is finite, has one value per sample, and is continuous in r."""
    from limitlab.laws.dmft._jumps import steepest_slope
    from limitlab.laws.dmft._losses import as_vector

    assert loss.function is not None
    function = loss.function
    several = width > 1
    try:
        with np.errstate(all="ignore"):
            built = as_vector(loss_from_function(function, vector=several))
            arguments = _samples(width)
            values, gradient = (np.asarray(part(*arguments), dtype=float) for part in (built.error, built.first))
    except Exception as error:
        raise loss.refusal(
            function,
            f"it failed on arrays of samples ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            f"{user_line(error)}); write it with jax.numpy, or with NumPy functions of arrays",
        ) from error
    if values.shape != (SAMPLES,) or gradient.shape != (width, SAMPLES):
        raise loss.refusal(
            function, f"it returned shape {values.shape} for {SAMPLES} samples, and must return one number for each"
        )
    if not (np.isfinite(values).all() and np.isfinite(gradient).all()):
        raise loss.refusal(function, "it or its derivative is not finite at some samples with standard Gaussian r, w and e")
    slope, size = steepest_slope(lambda r, w, e: np.asarray(built.error(r, w, e)), (np.ones(width), np.ones(1)), 0, 0)
    if slope > JUMP * max(size, 1e-300):
        raise loss.refusal(
            function,
            "it jumps in r, and the gradient of descent does not contain the jump; use a loss that is continuous in the prediction",
        )
    return built if not several else _symmetric(built, width)


def _symmetric(loss: Loss, width: int) -> Loss:
    """Return the loss with the information whether relabelled neurons give the same value."""
    from dataclasses import replace

    r, w, e = _samples(width)
    values, turned = np.asarray(loss.error(r, w, e)), np.asarray(loss.error(np.roll(r, 1, axis=0), w, e))
    return replace(loss, exchangeable=bool(np.allclose(values, turned, rtol=1e-9, atol=1e-12)))


def _samples(width: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(11)
    return 1.5 * rng.standard_normal((width, SAMPLES)), rng.standard_normal((1, SAMPLES)), rng.standard_normal(SAMPLES)


def _fingerprints(function: Callable[[Any, Any, Any], Any]) -> list[Floats]:
    """Return values of a function that identify it, for one neuron or for two."""
    for width in (1, 2):
        r, w, e = _samples(width)
        arguments = (r[0], w[0], e) if width == 1 else (r, w, e)
        try:
            values = np.asarray(function(*arguments), dtype=float).ravel()
        except Exception:
            continue
        if values.size and np.isfinite(values).all():
            return [values]
    return []
