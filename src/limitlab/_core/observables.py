"""What a law measures: the declaration of an observable, and the vocabulary of those that several laws share.

Squared errors carry no factor 1/2 anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Observable:
    """The metadata of one observable, as read back from a law by `Law.outputs()`; see `observable` for their meaning."""

    long_name: str = ""
    symbol: str = ""
    rate: float | tuple[float, float] | None = None
    scalar: bool = False
    dims: tuple[str, ...] | None = None


def observable(
    long_name: str = "",
    symbol: str = "",
    *,
    rate: float | tuple[float, float] | None = None,
    scalar: bool = False,
    dims: tuple[str, ...] | None = None,
) -> Observable:
    """Declare an observable of a law.

    Parameters
    ----------
    long_name
        What it is, in a few words. Left out for a name of the shared vocabulary.
    symbol
        Its LaTeX symbol.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r (default: the law's `finite_size_rate`; `math.inf`: none).
        Two numbers: it lies between them.
    scalar
        Whether it does not depend on the law's coordinates.
    dims
        Dimensions of its own, for raw samples such as eigenvalues.

    Examples
    --------
    >>> observable("largest eigenvalue", r"\\lambda_{\\max}", rate=2 / 3).long_name
    'largest eigenvalue'
    """
    return Observable(long_name, symbol, rate, scalar, dims)


VOCABULARY: dict[str, Observable] = {
    "test_error": Observable("mean squared error on a new noisy label", r"E_{\mathrm{test}}"),
    "risk": Observable("expected squared error", r"R"),
    "excess_risk": Observable("mean squared error on a new noiseless label", r"R"),
    "train_error": Observable("mean squared residual on the training set", r"E_{\mathrm{train}}"),
    "bias": Observable("squared bias given the inputs", r"B"),
    "variance": Observable("variance given the inputs", r"V"),
    "mean_bias": Observable("mean bias", r"\mathbb{E}\,b"),
    "squared_bias": Observable("mean squared bias", r"\mathbb{E}\,b^2"),
    "degrees_of_freedom": Observable("degrees of freedom per sample", r"\mathrm{df}_1/n"),
    "effective_ridge": Observable("effective ridge", r"\kappa"),
    "coefficient_norm": Observable("squared norm of the coefficients", r"|b|^2"),
    "smallest_eigenvalue": Observable("smallest non-zero eigenvalue", r"\lambda_{\min}"),
    "largest_eigenvalue": Observable("largest eigenvalue", r"\lambda_{\max}"),
    "atom": Observable("mass at zero", r"\mu(\{0\})"),
    "second_moment": Observable("second moment", r"\int x^2 \mathrm{d}\mu"),
    "stieltjes_transform": Observable("Stieltjes transform at minus the shift", r"\int \mathrm{d}\mu/(x+\lambda)"),
    "cdf": Observable("cumulative distribution function", r"F(x)"),
    "objective": Observable("minimised objective", r"\mathcal{L}"),
    "margin": Observable("margin", r"\kappa^*"),
    "classification_error": Observable("probability of a wrong label", r"P_{\mathrm{err}}"),
    "support_fraction": Observable("share of samples that are support vectors", r"n_{\mathrm{SV}}/n"),
    "largest_deviation": Observable("mean of the largest deviation of an empirical risk", r"\mathbb{E} D"),
    "largest_deviation_std": Observable("standard deviation of the largest deviation", r"\mathrm{sd}\,D"),
    "separable": Observable("whether the classes can be separated", ""),
    "train_loss": Observable("mean loss on the training set", r"\hat{\mathcal{L}}"),
    "overlap": Observable("overlap", r"m"),
    "residual": Observable("squared length outside the signal", r"q"),
    "mean_overlap": Observable("mean overlap of two tokens", r"\bar m"),
    "second_layer": Observable("second-layer weight", r"a"),
    "correlation": Observable("correlation of two neurons", r"C_o"),
}
"""Observables whose name means the same in every law that has it."""


def shared(*names: str, rate: float | None = None, scalar: bool = False) -> dict[str, Observable]:
    """Observables of the vocabulary, to stand beside a law's own.

    >>> list(shared("bias", "variance") | {"gcv": observable("generalised cross-validation score")})
    ['bias', 'variance', 'gcv']
    """
    return declared(dict.fromkeys(names, Observable(rate=rate, scalar=scalar)))


def declared(names: Collection[str]) -> dict[str, Observable]:
    """The observables that a law lists: names of the vocabulary, or a mapping with declarations of its own.

    >>> declared(("bias", "variance"))["bias"].long_name
    'squared bias given the inputs'
    >>> declared({"bias": observable(rate=2.0)})["bias"]
    Observable(long_name='squared bias given the inputs', symbol='B', rate=2.0, scalar=False, dims=None)
    """
    own: Mapping[str, Observable] = names if isinstance(names, Mapping) else dict.fromkeys(names, Observable())
    return {name: _completed(name, meta) for name, meta in own.items()}


def _completed(name: str, meta: Observable) -> Observable:
    known = VOCABULARY.get(name)
    if meta.long_name:
        if known is not None and meta.long_name != known.long_name:
            raise TypeError(
                f"observable {name!r} already means {known.long_name!r}: choose another name for {meta.long_name!r}"
            )
        return meta
    if known is None:
        raise TypeError(
            f"observable {name!r} is not in the shared vocabulary: declare it as {name}=observable('what it is', 'symbol')"
        )
    return replace(known, rate=meta.rate, scalar=meta.scalar, dims=meta.dims)
