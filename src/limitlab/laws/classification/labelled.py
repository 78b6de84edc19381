"""The parameters that all laws of classification share: how labels depend on a Gaussian score."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Law, parameter
from limitlab.models.links import Labels, Link


class LabelledLaw(Law):
    """Labels y = -1, +1 with P(y = +1 | x) = f(<beta, x>), |beta| = 1."""

    link: Link = parameter(
        "sign",
        "how the label depends on the score",
        note="sign, probit, logit, flip, or a function f(t) in [0, 1]",
        symbol="f",
    )
    link_strength: float = parameter(
        1.0,
        note="slope b of probit, logit and functions f(b t); probability of a wrong label for flip; not used by sign",
        least=0,
    )

    @model_validator(mode="after")
    def _flip_at_most_half(self) -> Self:
        if self.link == Link("flip") and self.link_strength > 0.5:
            raise Refused(
                f"link_strength = {self.link_strength:g} is not allowed with link = 'flip': must be at least 0, at most 0.5 "
                "(the probability of a wrong label)"
            )
        return self

    @property
    def labels(self) -> Labels:
        """Link and strength together."""
        return Labels(self.link, self.link_strength)
