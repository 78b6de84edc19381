"""The declaration of an observable, which is a quantity that a law predicts and measures.

Squared errors have no factor 1/2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from limitlab._core.vocabulary import OBSERVABLES


@dataclass(frozen=True)
class Observable:
    """The metadata of one observable, returned by `Law.outputs()`; `observable` explains the fields."""

    long_name: str = ""
    symbol: str = ""
    rate: float | tuple[float, float] | None = None
    scalar: bool = False
    dims: tuple[str, ...] | None = None
    compared: bool = True


def observable(
    long_name: str = "",
    symbol: str = "",
    *,
    rate: float | tuple[float, float] | None = None,
    scalar: bool = False,
    dims: tuple[str, ...] | None = None,
    compared: bool = True,
) -> Observable:
    """Declare an observable of a law.

    Parameters
    ----------
    long_name
        The meaning, in a few words. It is omitted for a name of the shared vocabulary.
    symbol
        Its LaTeX symbol.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r. The default is that of the law's `simulation`. `math.inf`
        states that there is no gap. Two numbers state that the exponent lies between them.
    scalar
        Whether it does not depend on the law's coordinates.
    dims
        Dimensions of its own, for raw samples such as eigenvalues.
    compared
        Whether a comparison judges it. False for a quantity that only the prediction or only the experiment has, such as a
        threshold or raw eigenvalues.

    Examples
    --------
    >>> observable("largest eigenvalue", r"\\lambda_{\\max}", rate=2 / 3).long_name
    'largest eigenvalue'
    """
    return Observable(long_name, symbol, rate, scalar, dims, compared)


VOCABULARY: dict[str, Observable] = {name: Observable(*words) for name, words in OBSERVABLES.items()}
"""Observables with the same meaning in every law that has them."""


def shared(*names: str, rate: float | None = None, scalar: bool = False, compared: bool = True) -> dict[str, Observable]:
    """Return observables of the vocabulary, to be used together with observables that the law declares.

    >>> list(shared("bias", "variance") | {"gcv": observable("generalised cross-validation score")})
    ['bias', 'variance', 'gcv']
    """
    return declared(dict.fromkeys(names, Observable(rate=rate, scalar=scalar, compared=compared)))


def declared(names: Collection[str]) -> dict[str, Observable]:
    """Return the observables that a law lists, as names of the vocabulary or as a mapping with declarations.

    >>> declared(("bias", "variance"))["bias"].long_name
    'squared bias given the inputs'
    >>> declared({"bias": observable(rate=2.0)})["bias"]
    Observable(long_name='squared bias given the inputs', symbol='B', rate=2.0, scalar=False, dims=None, compared=True)
    """
    metas: Mapping[str, Observable] = names if isinstance(names, Mapping) else dict.fromkeys(names, Observable())
    return {name: _completed(name, meta) for name, meta in metas.items()}


def _completed(name: str, meta: Observable) -> Observable:
    known = VOCABULARY.get(name)
    if meta.long_name:
        if known is not None and meta.long_name != known.long_name:
            raise TypeError(
                f"observable name {name!r} is reserved for {known.long_name!r}: choose another name for {meta.long_name!r}"
            )
        return meta
    if known is None:
        raise TypeError(
            f"observable {name!r} is not in the shared vocabulary: declare it as {name}=observable('what it is', 'symbol')"
        )
    return replace(known, rate=meta.rate, scalar=meta.scalar, dims=meta.dims, compared=meta.compared)
