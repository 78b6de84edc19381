"""How much memory a decomposition takes, how much there is, and a refusal with a remedy before the work starts."""

from __future__ import annotations

from limitlab._core.cost import available_memory


def exact_bytes(points: int, itemsize: int = 8) -> float:
    """Peak of an exact decomposition of a Gram matrix: the matrix, which becomes its eigenvectors, and LAPACK's work space.

    >>> round(exact_bytes(20_000) / 1e9, 1)
    9.6
    """
    return 3.0 * points**2 * itemsize


def factor_bytes(points: int, columns: int, itemsize: int = 8) -> float:
    """Peak of a decomposition through a table of features: the table, its singular vectors, and work space.

    >>> round(factor_bytes(100_000, 1000) / 1e9, 1)
    2.4
    """
    return 3.0 * points * columns * itemsize


def require_memory(needed: float, limit: float | None, what: str, remedy: str) -> None:
    """Refuse a computation that will not fit, in one line that says what would.

    >>> require_memory(1e10, 8e9, "decomposing 20000 points", "use dtype='float32'")
    Traceback (most recent call last):
    ...
    ValueError: decomposing 20000 points needs about 10.0 GB of memory and 8.0 GB may be used: use dtype='float32'
    """
    bound = available_memory() if limit is None else limit
    if needed > bound:
        raise ValueError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory and {bound / 1e9:.1f} GB may be used: {remedy}"
        )
