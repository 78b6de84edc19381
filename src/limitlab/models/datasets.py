"""Data sets that need no network: the digits and diabetes tables of scikit-learn, and 8,000 images of MNIST.

All are returned as inputs (one row per example) and targets. `prepared` gives them in the form in which learning curves are
drawn: centred inputs of mean squared norm 1, so that one ridge means the same for all of them.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import did_you_mean

__all__ = ["digits", "mnist", "prepared"]

Array = NDArray[np.float64]
Part = Literal["train", "test", "all"]

HALF = 4000
"""The first 4,000 images of MNIST are for training, the other 4,000 for testing."""


class Data(NamedTuple):
    """Inputs, one row per example, and targets (numbers, or labels of classes)."""

    X: Array
    y: NDArray[Any]


def mnist(part: Part = "all") -> Data:
    """Handwritten digits: rows of 784 grey levels between 0 and 1, labels 0 to 9 (LeCun, Cortes and Burges, CC BY-SA 3.0).

    Parameters
    ----------
    part
        "train" (the first 4,000), "test" (the other 4,000) or "all".

    Examples
    --------
    >>> X, y = mnist("train")
    >>> X.shape, y[:5].tolist()
    ((4000, 784), [3, 8, 1, 0, 4])
    """
    rows = {"train": slice(HALF), "test": slice(HALF, None), "all": slice(None)}
    if part not in rows:
        raise ValueError(f"part = {part!r} is not allowed: must be 'train', 'test' or 'all'")
    source = files("limitlab.models").joinpath("data_files/mnist_8k.npz")
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        images, labels = arrays["images"][rows[part]], arrays["labels"][rows[part]]
    return Data(images.reshape(len(images), -1) / 255.0, labels.astype(np.int64))


def digits() -> Data:
    """The 1,797 small images (8 x 8) of digits that come with scikit-learn.

    >>> digits().X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits

    return Data(*load_digits(return_X_y=True))


def diabetes() -> Data:
    """Ten measurements of 442 diabetes patients and the progression of the disease a year later (scikit-learn).

    >>> diabetes().X.shape
    (442, 10)
    """
    from sklearn.datasets import load_diabetes

    return Data(*load_diabetes(return_X_y=True))


def prepared(name: str) -> Data:
    """A data set by name, ready for kernels: centred, mean squared norm 1; digits as even (+1) or odd (-1).

    Parameters
    ----------
    name
        "digits" (common scale for all pixels), "diabetes" (columns standardised, target standardised) or "mnist" (the first
        4,000 images, common scale).

    Examples
    --------
    >>> X, y = prepared("diabetes")
    >>> float((X**2).sum(axis=1).mean().round(12)), float(y.std().round(12))
    (1.0, 1.0)
    """
    if name == "diabetes":
        X, y = diabetes()
        return Data((X - X.mean(axis=0)) / (X.std(axis=0) * X.shape[1] ** 0.5), (y - y.mean()) / y.std())
    if name not in ("digits", "mnist"):
        raise ValueError(f"there is no data set {name!r}: {did_you_mean(name, ('digits', 'diabetes', 'mnist'))}")
    X, label = digits() if name == "digits" else mnist("train")
    centred = X - X.mean(axis=0)
    return Data(centred / np.sqrt(centred.var(axis=0).sum()), 1.0 - 2.0 * (label % 2))
