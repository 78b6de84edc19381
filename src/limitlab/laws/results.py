"""What a result looks like: one vocabulary of observables, one way to package arrays as an `xarray.Dataset`."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from limitlab.laws.base import Law

Values = Mapping[str, ArrayLike]

ROUNDING = 1e-13
"""Relative accuracy claimed for closed forms: a few hundred units in the last place."""

OBSERVABLES: dict[str, tuple[str, str]] = {
    # name: (long name, symbol). Squared errors carry no factor 1/2 anywhere.
    "test_error": ("mean squared error on a new noisy label", r"E_{\mathrm{test}}"),
    "excess_risk": ("mean squared error on a new noiseless label", r"R"),
    "train_error": ("mean squared residual on the training set", r"E_{\mathrm{train}}"),
    "bias": ("squared bias given the inputs", r"B"),
    "variance": ("variance given the inputs", r"V"),
    "mean_bias": ("mean bias", r"\mathbb{E}\,b"),
    "squared_bias": ("mean squared bias", r"\mathbb{E}\,b^2"),
    "average_bias": ("squared bias of the predictor averaged over training sets", r"\bar B"),
    "degrees_of_freedom": ("degrees of freedom per sample", r"\mathrm{df}_1/n"),
    "effective_ridge": ("effective ridge", r"\kappa"),
    "coefficient_norm": ("squared norm of the coefficients", r"|b|^2"),
    "gcv": ("generalised cross-validation score", r"\mathrm{GCV}"),
    "empty_probability": ("probability that no sample is within the bandwidth", r"P_0"),
    "smallest_eigenvalue": ("smallest non-zero eigenvalue", r"\lambda_{\min}"),
    "largest_eigenvalue": ("largest eigenvalue", r"\lambda_{\max}"),
    "atom": ("mass at zero", r"\mu(\{0\})"),
    "second_moment": ("second moment of the spectrum", r"\int x^2 \mathrm{d}\mu"),
    "stieltjes_transform": ("Stieltjes transform at minus the shift", r"\int \mathrm{d}\mu/(x+\lambda)"),
    "cdf": ("cumulative distribution function", r"F(x)"),
    "density": ("density", r"\rho(x)"),
    "objective": ("minimised objective", r"\mathcal{L}"),
    "margin": ("margin", r"\kappa^*"),
    "classification_error": ("probability of a wrong label", r"P_{\mathrm{err}}"),
    "support_fraction": ("share of samples that are support vectors", r"n_{\mathrm{SV}}/n"),
    "separable": ("whether the classes can be separated", r""),
    "latent_correlation": ("correlation of the features with the latent label", r"\rho"),
    "train_loss": ("mean loss on the training set", r"\hat{\mathcal{L}}"),
    "distance": ("distance to the interpolant of least norm", r"|\theta_t - \hat\theta|"),
    "overlap": ("overlap", r"m"),
    "mean_overlap": ("mean overlap of two tokens", r"\bar m"),
    "pair_probability": ("share of pairs of tokens that have met", r"P_{\mathrm{pair}}"),
    "second_layer": ("second-layer weight", r"a"),
    "correlation": ("correlation of two neurons", r"C_o"),
    "cos1": ("first cosine moment", r"\mathbb{E}\cos\theta"),
    "sin1": ("first sine moment", r"\mathbb{E}\sin\theta"),
    "cos2": ("second cosine moment", r"\mathbb{E}\cos 2\theta"),
}


def package(
    law: Law,
    values: Values,
    *,
    kind: str,
    grid: Mapping[str, ArrayLike] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    **attrs: Any,
) -> xr.Dataset:
    """Arrays of a law as a Dataset with labelled dimensions, long names, symbols and provenance.

    Parameters
    ----------
    law
        The law the values come from.
    values
        Observables as arrays of shape (*grid, *coordinates). "accuracy" is the estimated relative error.
    kind
        "theory" or "simulation".
    grid
        Values of swept parameters, one dimension each, in order.
    dims
        Dimensions of variables that do not follow the rule above (raw samples such as eigenvalues).
    coords
        Further coordinates.
    attrs
        Further attributes (size and seed of a simulation).
    """
    given = dict(values)
    accuracy = float(np.max(np.asarray(given.pop("accuracy", ROUNDING))))
    outer = {name: np.asarray(axis) for name, axis in (grid or {}).items()}
    lines = {**outer, **{name: np.asarray(axis) for name, axis in law.coordinates().items()}}
    axes = [name for name, axis in lines.items() if axis.ndim]
    shape = tuple(lines[name].size for name in axes)
    data = {}
    for name, array in given.items():
        own = (dims or {}).get(name)
        if own is not None:
            value = np.asarray(array)
        else:
            value = shaped(law, name, array, shape, sum(name in outer for name in axes))
            own = axes[: value.ndim]
        long_name, symbol = OBSERVABLES.get(name, (name.replace("_", " "), ""))
        data[name] = xr.Variable(own, value, dict(long_name=long_name, symbol=symbol))
    result = xr.Dataset(data, coords={**lines, **(coords or {})})
    meta = type(law).parameters()
    for coordinate in map(str, result.coords):
        if coordinate in meta:
            result[coordinate].attrs.update(long_name=meta[coordinate].description, symbol=meta[coordinate].symbol)
    result.attrs.update(
        law=type(law).__name__,
        parameters=law.model_dump_json(),
        status=law.status,
        version=package_version(),
        kind=kind,
        **attrs,
    )
    if kind == "theory":
        result.attrs["accuracy"] = accuracy
        refuse_nan(result)
    return result


def shaped(law: Law, observable: str, array: ArrayLike, shape: tuple[int, ...], outer: int) -> NDArray[Any]:
    """An observable broadcast to the full shape; the first `outer` axes only, where it does not depend on coordinates."""
    value = np.asarray(array)
    if observable not in law.scalar_observables:
        return np.broadcast_to(value, shape)
    return np.broadcast_to(value, (*shape[:outer], *(1 for _ in shape[outer:]))).reshape(shape[:outer])


def refuse_nan(result: xr.Dataset) -> None:
    """NaN never appears silently in a prediction (infinity may: some limits are infinite)."""
    bad = [str(name) for name, array in result.items() if np.isnan(array.values).any()]
    if bad:
        raise FloatingPointError(
            f"{result.attrs['law']} gave NaN for {', '.join(bad)} at {result.attrs['parameters']}; "
            "please report this, and move the parameters slightly in the meantime"
        )


@functools.cache
def package_version() -> str:
    """Version of the installed package, as stored with every result."""
    try:
        return version("limitlab")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "0+unknown"


def parameters_of(result: xr.Dataset) -> dict[str, Any]:
    """The parameters a result was computed for.

    >>> from limitlab.laws import Ridge
    >>> parameters_of(Ridge(ratio=2.0).theory())["ratio"]
    2.0
    """
    return dict(json.loads(result.attrs["parameters"]))
