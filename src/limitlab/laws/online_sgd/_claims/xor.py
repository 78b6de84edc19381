"""Claims about the XOR mixture (J21)."""

from __future__ import annotations

import math

import numpy as np

from limitlab.lab.check import SIGMAS, Check, largest
from limitlab.lab.claims import claim
from limitlab.laws.online_sgd.xor import XorMixture, capture_level, fixed_components, success_probability
from limitlab.laws.online_sgd.xor_flow import XorDynamics

AREA = "Online SGD"


XOR_SIGMAS = 4.0
"""Largest distance of the share of successful networks from p_K, in standard errors."""


@claim(
    "J21", AREA, XorMixture, XorDynamics, figure="xor-success", quick_decides=False, items=("J-43", "J-44", "J-45", "J-46")
)
def xor(check: Check) -> None:
    """The XOR mixture has critical regulariser 1/8, 39 components of fixed points at K = 4 and success probability p_K.

    The check counts the fixed points and tests the success probability, the sign rule, the final margins, and the ballistic ODE at finite
    noise. The number of networks of width 4 separates p_4 = 3/32 from 3/27.
    """
    counts = [len(fixed_components(width)) for width in (1, 2, 3, 4, 5, 8)]
    check.equal("components of fixed points at K = 1, 2, 3, 4, 5, 8", ", ".join(map(str, counts)), "5, 17, 35, 39, 16, 16")
    check.equal("p_4", float(success_probability(4)), 3 / 32)
    few = check.quick
    z = []
    for width, size, networks in (
        (4, 250 if few else 500, 300 if few else 12_000),
        (6, 500 if few else 2000, 200 if few else 400),
    ):
        law = XorMixture(width=width, networks=networks)
        margins, announced = law.train(law.draw(size, 0))
        captured = margins > capture_level(margins)
        share, p = float(np.mean(captured.all(axis=1))), law.success_probability()
        error = math.sqrt(p * (1 - p) / networks)
        z.append(abs(share - p) / error)
        check.show(f"share of successes at K = {width}, N = {size}", share)
        check.show(f"standard error of the share at K = {width}", error)
        check.show(f"p_K at K = {width}", p)
    check.below("largest z of the share of successes at K = 4, 6", largest(z), XOR_SIGMAS)
    agreement = float(np.mean(np.all(captured == announced, axis=1)))
    check.above("share of networks whose signs at the start predict the captured classes, K = 6", agreement, 0.9)
    middle = float(np.median(margins[captured]))
    check.near_relative("median margin of captured classes at K = 6", middle, law.class_strength(), 0.02)
    strong = XorMixture(width=4, regularizer=0.15, networks=5)
    left = float(strong.train(strong.draw(200, 0))[0].max())
    check.below("largest margin above the critical regulariser, alpha = 0.15", left, 0.1)
    wide = {width: failures(width, size // 5, 400 if few else 2000) for width in (8, 12)}
    for width, (share, _) in wide.items():
        check.show(f"share of failures at K = {width}", share)
        check.show(f"1 - p_K at K = {width}", 1 - float(success_probability(width)))
    check.below("largest z of the share of failures at K = 8, 12", largest(z for _, z in wide.values()), SIGMAS)
    check.below("share of failures at K = 12 over that at K = 8 (limit (3/4)^4 = 0.32)", wide[12][0] / wide[8][0], 0.5)
    wins, again = XorMixture(width=8, networks=40 if few else 400).lottery_tickets(100 if few else 400, 2)
    kept = again / wins
    check.above("share of pruned networks that succeed again from their own start", kept, 0.9)
    check.above(
        "this share over p_4, the probability for four new random neurons", kept / float(success_probability(4)), 9.0
    )
    check.show("networks of width 8 that were pruned", wins)
    check.agree(
        "the flow at finite noise of one neuron and of two, at several times:",
        XorDynamics,
        seeds=150 if few else 600,
        together=True,
    )
    check.note("Correction of the source: four neurons capture all clusters with the probability p_4 = 3/32, not 3/27.")


def failures(width: int, size: int, networks: int) -> tuple[float, float]:
    """Return the share of networks that miss a cluster, and its distance from 1 - p_K in standard errors.

    The distance allows for a bias of order 1/sqrt(N).
    """
    law = XorMixture(width=width, networks=networks)
    margins, _ = law.train(law.draw(size, 1))
    share = float(np.mean((margins <= capture_level(margins)).any(axis=1)))
    p = 1 - law.success_probability()
    return share, max(abs(share - p) - 0.5 * p / math.sqrt(size), 0.0) / math.sqrt(p * (1 - p) / networks)
