"""Transformers as interacting particles: attention fields, flows of tokens on the sphere, clusters and energies."""

from limitlab.models.attention.fields import Attention as Attention
from limitlab.models.attention.fields import FeedForward as FeedForward
from limitlab.models.attention.fields import Head as Head
from limitlab.models.attention.token_flow import flow as flow

__all__ = ["Attention", "FeedForward", "Head", "flow"]
