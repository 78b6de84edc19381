"""Transformers as interacting particles, with attention fields, flows of tokens on the sphere, clusters and energies."""

from limitlab.models.attention.clusters import cluster_count as cluster_count
from limitlab.models.attention.clusters import overlap_profile as overlap_profile
from limitlab.models.attention.clusters import pair_fraction as pair_fraction
from limitlab.models.attention.clusters import random_transformer as random_transformer
from limitlab.models.attention.clusters import token_energy as token_energy
from limitlab.models.attention.engines import gram_flow as gram_flow
from limitlab.models.attention.engines import gram_path as gram_path
from limitlab.models.attention.engines import token_paths as token_paths
from limitlab.models.attention.ensembles import draw_matrices as draw_matrices
from limitlab.models.attention.ensembles import phase_diagram as phase_diagram
from limitlab.models.attention.token_flow import Attention as Attention
from limitlab.models.attention.token_flow import FeedForward as FeedForward
from limitlab.models.attention.token_flow import Head as Head
from limitlab.models.attention.token_flow import flow as flow

__all__ = [
    "Attention",
    "FeedForward",
    "Head",
    "cluster_count",
    "draw_matrices",
    "flow",
    "gram_flow",
    "gram_path",
    "overlap_profile",
    "pair_fraction",
    "phase_diagram",
    "random_transformer",
    "token_energy",
    "token_paths",
]
