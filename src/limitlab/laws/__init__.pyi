"""What `limitlab.laws` exports, one line each. A name is imported when it is first used."""

from .attention.circle import CircleMeanField as CircleMeanField
from .attention.clustering import TokenClustering as TokenClustering
from .attention.equiangular import EquiangularTokens as EquiangularTokens
from .attention.residual import ResidualFlow as ResidualFlow
from .attention.single_cluster import SingleCluster as SingleCluster
from .base import Law as Law
from .classification.convex_loss import ConvexLoss as ConvexLoss
from .classification.margin_equivalence import MarginEquivalence as MarginEquivalence
from .classification.max_margin import MaxMargin as MaxMargin
from .classification.random_features_margin import RandomFeaturesMargin as RandomFeaturesMargin
from .descent.least_squares import LeastSquaresDescent as LeastSquaresDescent
from .descent.logistic import LogisticDescent as LogisticDescent
from .dmft.first_order import FirstOrderDynamics as FirstOrderDynamics
from .dmft.growth import AdiabaticGrowth as AdiabaticGrowth
from .dmft.interpolation import InterpolationTransition as InterpolationTransition
from .dmft.population import MeanFieldSingleIndex as MeanFieldSingleIndex
from .dmft.population import PopulationFlow as PopulationFlow
from .dmft.two_layer import TwoLayerDynamics as TwoLayerDynamics
from .parameters import parameter as parameter
from .regression.early_stopping import EarlyStopping as EarlyStopping
from .regression.gaussian_equivalence import GaussianEquivalence as GaussianEquivalence
from .regression.nearest_neighbours import NearestNeighbours as NearestNeighbours
from .regression.random_features import RandomFeaturesRidge as RandomFeaturesRidge
from .regression.ridge import Ridge as Ridge
from .regression.singular_kernel import SingularKernelSmoother as SingularKernelSmoother
from .sgd.mixture import OnlineMixture as OnlineMixture
from .sgd.pca import OnlinePCA as OnlinePCA
from .sgd.single_index import OnlineSingleIndex as OnlineSingleIndex
from .sgd.spiked_tensor import SpikedTensor as SpikedTensor
from .sgd.spiked_tensor import SpikedTensorDiffusion as SpikedTensorDiffusion
from .sgd.xor import XorMixture as XorMixture
from .sgd.xor_flow import XorDynamics as XorDynamics
from .spectra.marchenko_pastur import MarchenkoPastur as MarchenkoPastur
from .spectra.sample_covariance import SampleCovariance as SampleCovariance

__all__ = [
    "AdiabaticGrowth",
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
