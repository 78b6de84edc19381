"""Data sets that need no internet connection, and small tasks on real images.

The data sets are the digits and diabetes tables of scikit-learn, and 8,000 images of MNIST. All are returned as inputs (one row per
example) and targets. `prepared` returns them with centred inputs of mean squared norm 1, so that the same ridge has the same effect for all
of them. `image_task` is to classify digits as even or odd, or into ten classes, from a few whitened principal components. `row_task` is
to decide whether the first two digits in an image of a row of digits are equal.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import number, one_of, whole

__all__ = ["digits", "mnist", "prepared"]

# -- data sets ----------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Part = Literal["train", "test", "all"]

HALF = 4000
"""The first 4,000 images of MNIST are for training, the other 4,000 for testing."""


class Data(NamedTuple):
    """Inputs, one row per example, and targets (numbers, or labels of classes)."""

    X: Array
    y: NDArray[Any]


def mnist(part: Part = "all") -> Data:
    """Return handwritten digits as rows of 784 grey levels between 0 and 1, with labels 0 to 9.

    The images are from MNIST (LeCun, Cortes and Burges, CC BY-SA 3.0).

    Parameters
    ----------
    part
        "train" (the first 4,000 images), "test" (the remaining 4,000) or "all".

    Examples
    --------
    >>> X, y = mnist("train")
    >>> X.shape, y[:5].tolist()
    ((4000, 784), [3, 8, 1, 0, 4])
    """
    rows = {"train": slice(HALF), "test": slice(HALF, None), "all": slice(None)}
    one_of("part", part, rows)
    source = files("limitlab.models").joinpath("data_files/mnist_8k.npz")
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        images, labels = arrays["images"][rows[part]], arrays["labels"][rows[part]]
    return Data(images.reshape(len(images), -1) / 255.0, labels.astype(np.int64))


def digits() -> Data:
    """Return the 1,797 images (8 x 8 pixels) of digits of scikit-learn.

    >>> digits().X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits

    return Data(*load_digits(return_X_y=True))


def diabetes() -> Data:
    """Return ten measurements of 442 diabetes patients and the progression of the disease a year later (scikit-learn).

    >>> diabetes().X.shape
    (442, 10)
    """
    from sklearn.datasets import load_diabetes

    return Data(*load_diabetes(return_X_y=True))


def prepared(name: str) -> Data:
    """Return a data set by name with centred inputs of mean squared norm 1.

    The labels of digits are +1 (even) and -1 (odd).

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
    one_of("name", name, ("digits", "diabetes", "mnist"))
    if name == "diabetes":
        X, y = diabetes()
        return Data((X - X.mean(axis=0)) / (X.std(axis=0) * X.shape[1] ** 0.5), (y - y.mean()) / y.std())
    X, label = digits() if name == "digits" else mnist("train")
    centred = X - X.mean(axis=0)
    return Data(centred / np.sqrt(centred.var(axis=0).sum()), 1.0 - 2.0 * (label % 2))


# -- tasks on images ----------------------------------------------------------------------------------------------------

Images = Literal["digits", "mnist"]
Labels = Literal["parity", "classes"]


class Task(NamedTuple):
    """Training inputs and labels (some of them wrong), test inputs and correct labels, as rows of +1 and -1."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def image_task(
    images: Images = "digits",
    samples: int = 300,
    flips: float = 0.0,
    components: int = 10,
    seed: int = 0,
    labels: Labels = "parity",
    tests: int | None = None,
) -> Task:
    """Return a random split of images with a share of wrong training labels.

    Parameters
    ----------
    images
        "digits" (1,797 of 8 x 8 pixels) or "mnist" (8,000 of 28 x 28).
    samples
        Number of training images.
    flips
        Share of the training labels that are wrong. A wrong label has the opposite parity, or is another class drawn at random.
    components
        Number of principal components, each scaled to variance 1.
    seed
        Seed of the split and of the wrong labels.
    labels
        "parity" (one column) or "classes" (ten columns, +1 for the class and -1 for the remaining columns).
    tests
        Number of test images (default: all remaining images).

    Examples
    --------
    >>> task = image_task(samples=100, flips=0.1)
    >>> task.X.shape, task.y.shape, task.X_test.shape
    ((100, 10), (100, 1), (1697, 10))
    """
    inputs, digit = components_of(images, components)
    samples = whole("samples", samples, least=1, most=len(inputs) - 1, remedy=f"there are {len(inputs)} {images}")
    flips = number("flips", flips, least=0, most=1, remedy="it is a share of the labels")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(inputs))
    train, test = order[:samples], order[samples:][:tests]
    wrong = rng.permutation(samples)[: round(flips * samples)]
    seen = digit[train].copy()
    if labels == "parity":
        seen[wrong] += 1
        return Task(inputs[train], _parity(seen), inputs[test], _parity(digit[test]))
    seen[wrong] = (seen[wrong] + rng.integers(1, 10, len(wrong))) % 10
    return Task(inputs[train], _classes(seen), inputs[test], _classes(digit[test]))


@lru_cache(maxsize=8)
def pooled_digits(side: int = 7) -> tuple[Array, Array]:
    """Return the 8,000 images of MNIST averaged to side x side pixels, and their digits.

    The pixels have mean 0 and variance 1 over all images.

    >>> images, digit = pooled_digits(7)
    >>> images.shape, digit.shape
    ((8000, 7, 7), (8000,))
    """
    one_of("side", side, (1, 2, 4, 7, 14, 28))
    X, digit = mnist()
    window = 28 // side
    images = X.reshape(-1, side, window, side, window).mean(axis=(2, 4))
    scaled = (images - images.mean()) / images.std()
    scaled.setflags(write=False)
    return scaled, digit


def row_task(digits_in_row: int, samples: int, tests: int, seed: int = 0, side: int = 7) -> Task:
    """Return images of rows of handwritten zeros and ones, labelled by whether the first two digits are equal.

    The label does not depend on the remaining digits.

    Parameters
    ----------
    digits_in_row
        Number of digits in an image, at least 2. An image has side x (digits_in_row side) pixels.
    samples, tests
        Numbers of training images, from the first half of the MNIST images, and of test images, from the second half.
    seed
        Seed of the choice of digits.
    side
        Width and height of a digit in pixels.

    Examples
    --------
    >>> task = row_task(5, 100, 50)
    >>> task.X.shape, task.y.shape, sorted(set(task.y.ravel().tolist()))
    ((100, 7, 35), (100, 1), [-1.0, 1.0])
    """
    whole("digits_in_row", digits_in_row, least=2)
    images, digit = pooled_digits(side)
    rng, parts = np.random.default_rng(seed), []
    for count, half in ((samples, slice(0, 4000)), (tests, slice(4000, None))):
        eligible = np.arange(len(digit))[half]
        eligible = eligible[digit[eligible] < 2]
        picks = rng.choice(eligible, (count, digits_in_row))
        parts += [np.concatenate(list(images[picks].swapaxes(0, 1)), axis=2), _parity(digit[picks[:, :2]].sum(axis=1))]
    return Task(*parts)


@lru_cache(maxsize=8)
def components_of(images: str, components: int) -> tuple[Array, Array]:
    """Return the whitened principal components of a set of images, and their digits.

    >>> X, digit = components_of("digits", 3)
    >>> X.shape, (X.T @ X / len(X)).round(9).diagonal().tolist()
    ((1797, 3), [1.0, 1.0, 1.0])
    """
    one_of("images", images, ("digits", "mnist"))
    X, digit = digits() if images == "digits" else mnist()
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    rank = int((values > 1e-9 * values[-1]).sum())
    components = whole("components", components, least=1, most=rank, remedy="the rank of the images is the upper bound")
    leading = slice(None, -components - 1, -1)
    signs = np.sign(
        vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
    )  # makes the result independent of the signs that LAPACK returns
    scores = centred @ (vectors * signs / np.sqrt(np.maximum(values, 1e-300)))[:, leading]
    scores.setflags(write=False)
    return scores, digit


def _parity(digit: Array) -> Array:
    return (1.0 - 2.0 * (digit % 2))[:, None]


def _classes(digit: Array) -> Array:
    return 2.0 * (digit[:, None] == np.arange(10)) - 1.0
