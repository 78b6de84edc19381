"""Small tasks on real images: even or odd digits, or their ten classes, from a few whitened principal components."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import did_you_mean
from limitlab.models.datasets import digits, mnist

Array = NDArray[Any]
Images = Literal["digits", "mnist"]
Labels = Literal["parity", "classes"]


class Task(NamedTuple):
    """Training inputs and labels (some of them wrong), test inputs and labels (all right); labels are rows of +1 and -1."""

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
    """A random split of images with a share of wrong training labels.

    Parameters
    ----------
    images
        "digits" (1,797 of 8 x 8 pixels) or "mnist" (8,000 of 28 x 28).
    samples
        Training images.
    flips
        Share of the training labels that are wrong: the other parity, or another class drawn at random.
    components
        Principal components that are kept, each scaled to variance 1.
    seed
        Of the split and of the wrong labels.
    labels
        "parity" (one column) or "classes" (ten columns, +1 for the class and -1 for the others).
    tests
        Test images (default: all others).

    Examples
    --------
    >>> task = image_task(samples=100, flips=0.1)
    >>> task.X.shape, task.y.shape, task.X_test.shape
    ((100, 10), (100, 1), (1697, 10))
    """
    inputs, digit = components_of(images, components)
    if not 1 <= samples < len(inputs):
        raise ValueError(f"samples = {samples!r} is not allowed: must be between 1 and {len(inputs) - 1} ({images})")
    if not 0 <= flips <= 1:
        raise ValueError(f"flips = {flips!r} is not allowed: must be between 0 and 1 (a share of the labels)")
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
    """The 8,000 images of MNIST averaged to side x side pixels, with mean 0 and variance 1 over all pixels, and their digits.

    >>> images, digit = pooled_digits(7)
    >>> images.shape, digit.shape
    ((8000, 7, 7), (8000,))
    """
    if side not in (1, 2, 4, 7, 14, 28):
        raise ValueError(f"side = {side!r} is not allowed: must be 1, 2, 4, 7, 14 or 28 (a divisor of 28)")
    X, digit = mnist()
    window = 28 // side
    images = X.reshape(-1, side, window, side, window).mean(axis=(2, 4))
    found = (images - images.mean()) / images.std()
    found.setflags(write=False)
    return found, digit


def row_task(digits_in_row: int, samples: int, tests: int, seed: int = 0, side: int = 7) -> Task:
    """Images of a row of handwritten zeros and ones: are the first two equal? The others do not matter.

    Parameters
    ----------
    digits_in_row
        Digits in an image, at least 2; it has side x (digits_in_row side) pixels.
    samples, tests
        Training images, made of the first half of MNIST's, and test images, made of the second.
    seed
        Of the choice of digits.
    side
        Pixels of a digit's side.

    Examples
    --------
    >>> task = row_task(5, 100, 50)
    >>> task.X.shape, task.y.shape, sorted(set(task.y.ravel().tolist()))
    ((100, 7, 35), (100, 1), [-1.0, 1.0])
    """
    if digits_in_row < 2:
        raise ValueError(f"digits_in_row = {digits_in_row!r} is not allowed: must be a whole number of at least 2")
    images, digit = pooled_digits(side)
    rng, parts = np.random.default_rng(seed), []
    for count, half in ((samples, slice(0, 4000)), (tests, slice(4000, None))):
        known = np.arange(len(digit))[half]
        known = known[digit[known] < 2]
        chosen = rng.choice(known, (count, digits_in_row))
        parts += [np.concatenate(list(images[chosen].swapaxes(0, 1)), axis=2), _parity(digit[chosen[:, :2]].sum(axis=1))]
    return Task(*parts)


@lru_cache(maxsize=8)
def components_of(images: str, components: int) -> tuple[Array, Array]:
    """Whitened principal components of a set of images, and their digits.

    >>> X, digit = components_of("digits", 3)
    >>> X.shape, (X.T @ X / len(X)).round(9).diagonal().tolist()
    ((1797, 3), [1.0, 1.0, 1.0])
    """
    if images not in ("digits", "mnist"):
        raise ValueError(f"there are no images {images!r}: {did_you_mean(images, ('digits', 'mnist'))}")
    X, digit = digits() if images == "digits" else mnist()
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    if not 1 <= components <= int((values > 1e-9 * values[-1]).sum()):
        raise ValueError(f"components = {components!r} is not allowed: must be between 1 and the rank of the images")
    chosen = slice(None, -components - 1, -1)
    signs = np.sign(
        vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
    )  # the library's choice of sign must not matter
    found = centred @ (vectors * signs / np.sqrt(np.maximum(values, 1e-300)))[:, chosen]
    found.setflags(write=False)
    return found, digit


def _parity(digit: Array) -> Array:
    return (1.0 - 2.0 * (digit % 2))[:, None]


def _classes(digit: Array) -> Array:
    return 2.0 * (digit[:, None] == np.arange(10)) - 1.0
