"""The flow of the tokens of a transformer block with matrices of the user, as the limit of many layers with short steps.

Setting.  n tokens on the unit sphere of R^d. A block adds the outputs of attention heads with matrices Q, K, V and of a feed-forward layer
          w sigma(a x + b), divided by the number L of layers per unit of time, and normalises every token. With stochastic depth every
          block is skipped with probability 1 - p, and the others are divided by p.
Limit.    L -> infinity at fixed time, tokens and matrices.
Result.   The tokens follow x_i' = P_i F_i(x), where P_i removes the part along x_i (docs/theory/attention.md, eqs. 1-4). The positions of L
          layers differ from those of the flow by O(1/L), and with skipped blocks by random fluctuations of order L^(-1/2).
Status.   Theorem (convergence of Euler's method, because F is smooth and bounded on the sphere).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator, model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.models.activations import Activation
from limitlab.models.attention.token_flow import Attention, FeedForward, Head, flow

__all__ = ["TokenFlow"]

Array = NDArray[np.float64]
Matrix = tuple[tuple[float, ...], ...]

TOLERANCE, LOOSE = 1e-10, 1e-8
"""Tolerances of two integrations, whose difference estimates the error of the first one."""


class TokenFlow(Law):
    """Where do the tokens of a transformer with my own matrices Q, K, V, heads and feed-forward layer go?

    Examples
    --------
    >>> turn = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> law = TokenFlow(heads=[(None, None, None), (None, None, turn)], beta=2.0, tokens=5, dimension=3, times=(0.0, 1.0, 4.0))
    >>> law.theory().mean_overlap.values.round(4).tolist()
    [0.1505, 0.0949, -0.1972]
    """

    status = "theorem"
    regime = "number of layers per unit of time -> infinity; exact in the number of tokens and in the dimension"
    assumptions = (
        "the same matrices in every layer",
        "tokens that are normalised after every layer",
        "blocks skipped independently",
    )
    references = ("geshkovski2025mathematical",)
    page = "attention"
    observables = {
        **shared("mean_overlap"),
        "least_overlap": observable("least inner product of two tokens", r"g_{\min}"),
    }
    simulation = Experiment(
        "number L of layers per unit of time, rounded to whole layers", sizes=(20, 40, 80), draws=30, rate=1.0
    )
    # Two heads with matrices that differ, and a feed-forward layer with a bias
    points = (
        dict(
            heads=(
                (((1.0, 0.4), (0.0, 0.8)), None, ((0.9, -0.5), (0.5, 0.9))),
                (None, ((0.7, 0.0), (0.3, 1.2)), ((0.4, 0.0), (0.0, -0.3))),
            ),
            feed_forward=(((0.3, 0.0), (0.2, 0.4)), ((1.0, 0.5), (0.0, 1.0)), (0.1, -0.2)),
            beta=1.5,
            tokens=5,
            dimension=2,
            times=(0.5, 1.0, 2.0),
        ),
        dict(beta=3.0, tokens=6, dimension=3, causal=True, times=(1.0, 2.0)),
    )

    headline = Headline(
        "With a causal mask all tokens merge",
        x="times",
        over=(0.0, 12.0, 61),
        show=("mean_overlap",),
        curves=("causal", (False, True)),
        at=dict(tokens=16, dimension=3, beta=3.0),
        size=20,
        draws=4,
        places=(1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0),
        sliders=("beta", "tokens"),
    )

    heads: tuple[tuple[Matrix | None, Matrix | None, Matrix | None], ...] = parameter(
        ((None, None, None),), "matrices (Q, K, V) of every head", note="None: the identity", symbol="Q, K, V"
    )
    feed_forward: tuple[Matrix, Matrix, tuple[float, ...]] | None = parameter(
        None,
        "matrices w and a and vector b of the feed-forward layer w sigma(a x + b)",
        note="None: no such layer",
        symbol="w, a, b",
    )
    activation: Activation = parameter("tanh", note="of the feed-forward layer")
    beta: float = parameter(1.0, least=0, most=500)
    tokens: int = parameter(8, least=2, most=2000)
    dimension: int = parameter(3, least=2, most=1000)
    start_tokens: Matrix | None = parameter(
        None, "tokens at the start, one row each", note="None: random, by start_seed", symbol="x(0)"
    )
    start_seed: int = parameter(0, "seed of the tokens at the start", least=0)
    causal: bool = parameter(False, "whether a token attends to itself and earlier tokens only")
    survival: float = parameter(
        0.8, "probability that a block is not skipped", symbol="p", kind="experiment", above=0, most=1
    )
    times: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0, 4.0), note="one unit is L layers", kind="coordinate", least=0
    )

    @field_validator("heads", "feed_forward", "start_tokens", mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        """Convert arrays to tuples."""
        return _tuples(given)

    @model_validator(mode="after")
    def _shapes(self) -> Self:
        d = self.dimension
        if not self.heads:
            raise Refused("heads = () is not allowed: give at least one head, (None, None, None) for the identity")
        for index, head in enumerate(self.heads):
            for name, matrix in zip("QKV", head, strict=True):
                if matrix is not None:
                    _check_shape(f"{name} of head {index}", matrix, (d, d))
        if self.feed_forward is not None:
            w, a, b = self.feed_forward
            hidden = len(a)
            _check_shape("a of feed_forward", a, (hidden, d))
            _check_shape("w of feed_forward", w, (d, hidden))
            _check_shape("b of feed_forward", b, (hidden,))
        if self.start_tokens is not None:
            _check_shape("start_tokens", self.start_tokens, (self.tokens, d))
            if np.any(np.linalg.norm(np.array(self.start_tokens), axis=1) == 0):
                raise Refused("start_tokens is not allowed: a token is zero and has no direction")
        self.activation(np.zeros(1))
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all layers."""
        pairs = float(self.tokens) * self.tokens * len(self.heads)
        return Cost(1e5 + 40.0 * pairs, (1e4 + 20.0 * pairs * (1 + self.dimension / 10)) * size * max(latest(self), 1.0))

    def tokens_at_start(self) -> Array:
        """Return the unit tokens at the start, one row each.

        >>> TokenFlow(start_tokens=[[2.0, 0.0], [0.0, 1.0]], tokens=2, dimension=2).tokens_at_start()
        array([[1., 0.],
               [0., 1.]])
        """
        if self.start_tokens is None:
            x = np.random.default_rng(np.random.SeedSequence([self.start_seed, 314])).standard_normal(
                (self.tokens, self.dimension)
            )
        else:
            x = np.array(self.start_tokens)
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    def force(self) -> Attention:
        """Return the drift of the tokens before projection."""
        heads = [Head(*(None if m is None else np.array(m) for m in head)) for head in self.heads]
        layer = None
        if self.feed_forward is not None:
            w, a, b = (np.array(part) for part in self.feed_forward)
            layer = FeedForward(w, a, b, self.activation)
        return Attention(self.beta, heads=heads, feed_forward=layer, causal=self.causal)

    def positions(self) -> Array:
        """Return the positions of the tokens at the times of the law, of shape (times, tokens, dimension).

        >>> TokenFlow(tokens=3, dimension=2, times=(0.0, 1.0)).positions().shape
        (2, 3, 2)
        """
        return _solved(self, tuple(np.ravel(self.times).tolist()))[0]

    def predicted(self, times: Array) -> Values:
        """Integrate the flow; the error is the change from a hundred times the tolerance."""
        path, errors = _solved(self, tuple(np.ravel(times).tolist()))
        return {**_observed(path), "accuracy": errors}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Apply L layers per unit of time, each with probability `survival`."""
        force, x, layer, rows = self.force(), self.tokens_at_start(), 0, []
        for time in np.ravel(times):
            while layer < round(float(time) * draw.size):
                if draw.rng.random() < self.survival:
                    x = x + force.drift(layer / draw.size, x) / (self.survival * draw.size)
                    x = x / np.linalg.norm(x, axis=1, keepdims=True)
                layer += 1
            rows.append(x)
        return _observed(np.array(rows))


def _tuples(given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return _tuples(given.tolist())
    return tuple(_tuples(part) for part in given) if isinstance(given, (list, tuple)) else given


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    try:
        found = np.array(values, dtype=float).shape
    except ValueError:
        raise Refused(f"{name} is not allowed: its rows have different lengths, and its shape must be {shape}") from None
    if found != shape:
        raise Refused(f"{name} of shape {found} is not allowed: must have shape {shape}, given by dimension and tokens")


def _observed(path: Array) -> dict[str, Array]:
    """Return the overlaps and positions along a path of shape (times, n, d)."""
    n = path.shape[1]
    gram = path @ np.swapaxes(path, 1, 2)
    mean = (gram.sum(axis=(1, 2)) - np.trace(gram, axis1=1, axis2=2)) / (n * (n - 1))
    return dict(mean_overlap=mean, least_overlap=gram.min(axis=(1, 2)))


@lru_cache(maxsize=32)
def _solved(law: TokenFlow, times: tuple[float, ...]) -> tuple[Array, dict[str, float]]:
    """Return the path and the errors of the observables."""
    heads = [tuple(None if m is None else np.array(m) for m in head) for head in law.heads]
    options: dict[str, Any] = dict(heads=heads, feed_forward=law.force().feed_forward, causal=law.causal)
    paths = [
        np.reshape(
            flow(law.tokens_at_start(), law.beta, np.array(times), tolerance=tolerance, **options),
            (len(times), law.tokens, law.dimension),
        )
        for tolerance in (TOLERANCE, LOOSE)
    ]
    fine, coarse = (_observed(path) for path in paths)
    return paths[0], {name: float(np.abs(fine[name] - coarse[name]).max()) + 1e-12 for name in fine}
