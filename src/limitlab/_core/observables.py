"""What a law measures: the declaration of an observable.

Squared errors carry no factor 1/2 anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from limitlab._core.vocabulary import OBSERVABLES


@dataclass(frozen=True)
class Observable:
    """The metadata of one observable, as read back from a law by `Law.outputs()`; see `observable` for their meaning."""

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
        What it is, in a few words. Left out for a name of the shared vocabulary.
    symbol
        Its LaTeX symbol.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r (default: that of the law's `simulation`; `math.inf`: none).
        Two numbers: it lies between them.
    scalar
        Whether it does not depend on the law's coordinates.
    dims
        Dimensions of its own, for raw samples such as eigenvalues.
    compared
        Whether a comparison judges it. False for what only the prediction or only the experiment gives (a threshold, raw eigenvalues).

    Examples
    --------
    >>> observable("largest eigenvalue", r"\\lambda_{\\max}", rate=2 / 3).long_name
    'largest eigenvalue'
    """
    return Observable(long_name, symbol, rate, scalar, dims, compared)


VOCABULARY: dict[str, Observable] = {name: Observable(*words) for name, words in OBSERVABLES.items()}
"""Observables whose name means the same in every law that has it."""


def shared(*names: str, rate: float | None = None, scalar: bool = False, compared: bool = True) -> dict[str, Observable]:
    """Observables of the vocabulary, to stand beside a law's own.

    >>> list(shared("bias", "variance") | {"gcv": observable("generalised cross-validation score")})
    ['bias', 'variance', 'gcv']
    """
    return declared(dict.fromkeys(names, Observable(rate=rate, scalar=scalar, compared=compared)))


def declared(names: Collection[str]) -> dict[str, Observable]:
    """The observables that a law lists: names of the vocabulary, or a mapping with declarations of its own.

    >>> declared(("bias", "variance"))["bias"].long_name
    'squared bias given the inputs'
    >>> declared({"bias": observable(rate=2.0)})["bias"]
    Observable(long_name='squared bias given the inputs', symbol='B', rate=2.0, scalar=False, dims=None, compared=True)
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
    return replace(known, rate=meta.rate, scalar=meta.scalar, dims=meta.dims, compared=meta.compared)
