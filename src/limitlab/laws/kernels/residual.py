"""NNGP and tangent kernel of a deep residual network of infinite width.

Setting.  h_0 = W_0 x/sqrt(d),  h_(l+1) = h_l + (b/sqrt(N)) W_l s(h_l),  f = <v, h_L>/sqrt(N); all entries are independent N(0, 1), all
          are trained (L = `blocks`, b = `branch`).
Limit.    Width N -> infinity, L fixed.
Result.   docs/theory/residual_networks.md, equations (1)-(2): with T and T' the duals of s and s',

              K <- K + b^2 T(K),   Theta <- Theta (1 + b^2 T'(K)) + b^2 T(K),   start K = Theta = <x, x'>/d,
              NNGP = K_L,  tangent kernel = Theta_L + K_L.

Status.   Theorem, as a special case of the composition of layers (`limitlab.laws.Network`), which computes it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.checks import number, whole
from limitlab.laws.kernels.layers.layer import Dense, Nonlinear, Residual
from limitlab.laws.kernels.layers.network import KernelPair, Network

__all__ = ["residual_network", "resnet_ntk"]

LARGE = 1e6
"""Growth of the signal's variance from first to last block above which a warning is issued."""


def residual_network(blocks: int = 3, branch: float = 1.0, activation: Any = "relu") -> Network:
    """Return the network as layers, infinitely wide (`kernels`) and of finite width (`start`, `apply`).

    >>> net = residual_network(2, 0.5)
    >>> net.apply(net.start(np.random.default_rng(0), (3,), 50), np.eye(3)).shape
    (3, 1)
    """
    whole("blocks", blocks, least=0)
    number("branch", branch)
    body = [Residual(Nonlinear(activation), Dense(weight_std=float(branch))) for _ in range(int(blocks))]
    return Network(Dense(), *body, Dense(outputs=1))


def resnet_ntk(
    X: ArrayLike, Y: ArrayLike | None = None, blocks: int = 3, branch: float = 1.0, activation: Any = "relu"
) -> KernelPair:
    """Return NNGP and tangent kernel of an infinitely wide residual network, between the rows of X and those of Y (or of X).

    Parameters
    ----------
    X, Y
        Tables of inputs, one row each. Two single rows (1-d arrays) give two numbers.
    blocks
        Residual blocks L.
    branch
        The scale b of every branch. With relu the variance of the signal grows by 1 + b^2/2 per block. It stays bounded for b of order
        1/sqrt(L), but not for b = 1 (there is a warning if it has grown by more than a million).
    activation
        A name, a function of arrays or an `Activation`.

    Returns
    -------
    KernelPair
        `nngp` and `ntk`, shape (rows of X, rows of Y).

    Examples
    --------
    >>> nngp, ntk = resnet_ntk([[1.0, 0.5, -0.3, 0.8], [0.2, -1.0, 0.4, 0.6]], blocks=3)
    >>> nngp.round(6).tolist(), ntk.round(6).tolist()
    ([[1.670625, 0.432066], [0.432066, 1.31625]], [[5.011875, 0.96316], [0.96316, 3.94875]])
    """
    first = np.asarray(X, dtype=float)
    second = None if Y is None else np.asarray(Y, dtype=float)
    single = first.ndim == 1
    pair = residual_network(blocks, branch, activation).kernels(
        np.atleast_2d(first), None if second is None else np.atleast_2d(second)
    )
    start = float(np.max(np.mean(np.atleast_2d(first) ** 2, axis=1)))
    if start > 0 and np.max(np.abs(pair.nngp)) > LARGE * start:
        warnings.warn(
            f"the variance of the signal has grown by more than {LARGE:g} over {blocks} blocks: "
            f"branch = {branch:g} is large, use about 1/sqrt(blocks) = {blocks**-0.5:.3g}",
            stacklevel=2,
        )
    if single and (second is None or second.ndim == 1):
        return KernelPair(pair.nngp[0, 0], pair.ntk[0, 0])
    return pair
