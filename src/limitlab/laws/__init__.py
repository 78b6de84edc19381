"""The laws: one file each, parameters, equations and experiment in that order."""

from limitlab.laws.attention.circle import CircleMeanField as CircleMeanField
from limitlab.laws.attention.clustering import TokenClustering as TokenClustering
from limitlab.laws.attention.equiangular import EquiangularTokens as EquiangularTokens
from limitlab.laws.attention.residual import ResidualFlow as ResidualFlow
from limitlab.laws.attention.single_cluster import SingleCluster as SingleCluster
from limitlab.laws.base import Law as Law
from limitlab.laws.classification.convex_loss import ConvexLoss as ConvexLoss
from limitlab.laws.classification.margin_equivalence import MarginEquivalence as MarginEquivalence
from limitlab.laws.classification.max_margin import MaxMargin as MaxMargin
from limitlab.laws.classification.random_features_margin import RandomFeaturesMargin as RandomFeaturesMargin
from limitlab.laws.descent.least_squares import LeastSquaresDescent as LeastSquaresDescent
from limitlab.laws.descent.logistic import LogisticDescent as LogisticDescent
from limitlab.laws.dmft.first_order import FirstOrderDynamics as FirstOrderDynamics
from limitlab.laws.dmft.interpolation import InterpolationTransition as InterpolationTransition
from limitlab.laws.dmft.population import MeanFieldSingleIndex as MeanFieldSingleIndex
from limitlab.laws.dmft.population import PopulationFlow as PopulationFlow
from limitlab.laws.dmft.two_layer import TwoLayerDynamics as TwoLayerDynamics
from limitlab.laws.parameters import parameter as parameter
from limitlab.laws.regression.early_stopping import EarlyStopping as EarlyStopping
from limitlab.laws.regression.gaussian_equivalence import GaussianEquivalence as GaussianEquivalence
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours as NearestNeighbours
from limitlab.laws.regression.random_features import RandomFeaturesRidge as RandomFeaturesRidge
from limitlab.laws.regression.ridge import Ridge as Ridge
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother as SingularKernelSmoother
from limitlab.laws.sgd.mixture import OnlineMixture as OnlineMixture
from limitlab.laws.sgd.pca import OnlinePCA as OnlinePCA
from limitlab.laws.sgd.single_index import OnlineSingleIndex as OnlineSingleIndex
from limitlab.laws.sgd.spiked_tensor import SpikedTensor as SpikedTensor
from limitlab.laws.sgd.spiked_tensor import SpikedTensorDiffusion as SpikedTensorDiffusion
from limitlab.laws.sgd.xor import XorMixture as XorMixture
from limitlab.laws.sgd.xor_flow import XorDynamics as XorDynamics
from limitlab.laws.spectra.marchenko_pastur import MarchenkoPastur as MarchenkoPastur
from limitlab.laws.spectra.sample_covariance import SampleCovariance as SampleCovariance

__all__ = [
    "CircleMeanField",
    "ConvexLoss",
    "EarlyStopping",
    "EquiangularTokens",
    "FirstOrderDynamics",
    "GaussianEquivalence",
    "InterpolationTransition",
    "Law",
    "LeastSquaresDescent",
    "LogisticDescent",
    "MarchenkoPastur",
    "MarginEquivalence",
    "MaxMargin",
    "MeanFieldSingleIndex",
    "NearestNeighbours",
    "OnlineMixture",
    "OnlinePCA",
    "OnlineSingleIndex",
    "PopulationFlow",
    "RandomFeaturesMargin",
    "RandomFeaturesRidge",
    "ResidualFlow",
    "Ridge",
    "SampleCovariance",
    "SingleCluster",
    "SingularKernelSmoother",
    "SpikedTensor",
    "SpikedTensorDiffusion",
    "TokenClustering",
    "TwoLayerDynamics",
    "XorDynamics",
    "XorMixture",
    "parameter",
]
