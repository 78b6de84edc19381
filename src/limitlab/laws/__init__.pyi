# Written by `python -m limitlab._core.index`; do not edit.
"""The laws, one folder per subject."""

from .dmft.growth import AdiabaticGrowth as AdiabaticGrowth
from .kernels.layers.layer import AveragePool as AveragePool
from .classification.bayes_optimal import BayesOptimal as BayesOptimal
from ._author import CLOSED_FORM as CLOSED_FORM
from .attention.circle import CircleMeanField as CircleMeanField
from ._author import CoefficientPrior as CoefficientPrior
from .mean_field.cone import ConeFlow as ConeFlow
from .classification.convex_loss import ConvexLoss as ConvexLoss
from .kernels.layers.layer import Convolution as Convolution
from ._author import Cost as Cost
from .kernels.layers.layer import Dense as Dense
from .regression.distillation import Distillation as Distillation
from ._author import Draw as Draw
from .regression.early_stopping import EarlyStopping as EarlyStopping
from .online_sgd._effective import EffectiveDynamics as EffectiveDynamics
from .online_sgd.effective_flow import EffectiveFlow as EffectiveFlow
from .attention.equiangular import EquiangularTokens as EquiangularTokens
from ._author import Experiment as Experiment
from .uniform_convergence.finite_class import FiniteClass as FiniteClass
from .dmft.first_order import FirstOrderDynamics as FirstOrderDynamics
from .kernels.layers.layer import Flatten as Flatten
from .regression.gaussian_equivalence import GaussianEquivalence as GaussianEquivalence
from .alignment.general_mixture import GeneralMixtureAlignment as GeneralMixtureAlignment
from .kernels.layers.layer import GlobalAverage as GlobalAverage
from .approximation._frank_wolfe import GreedyNetwork as GreedyNetwork
from ._author import Headline as Headline
from .dmft.interpolation import InterpolationTransition as InterpolationTransition
from .kernels.gradient_flow import KernelGradientFlow as KernelGradientFlow
from ._author import Law as Law
from .kernels.lazy import LazyCertificate as LazyCertificate
from .kernels.lazy import LazyTraining as LazyTraining
from .descent.least_squares import LeastSquaresDescent as LeastSquaresDescent
from .landscapes.linear_network import LinearNetwork as LinearNetwork
from .classification.logistic_calibration import LogisticCalibration as LogisticCalibration
from .descent.logistic import LogisticDescent as LogisticDescent
from .spectra.marchenko_pastur import MarchenkoPastur as MarchenkoPastur
from .classification.margin_equivalence import MarginEquivalence as MarginEquivalence
from ._author import Mark as Mark
from .classification.max_margin import MaxMargin as MaxMargin
from .mean_field.particles import MeanFieldParticles as MeanFieldParticles
from .dmft.population import MeanFieldSingleIndex as MeanFieldSingleIndex
from .dmft.middle import MiddleRegime as MiddleRegime
from .landscapes.minima import Minima as Minima
from .alignment.mixture import MixtureAlignment as MixtureAlignment
from .regression.model_collapse import ModelCollapse as ModelCollapse
from .dmft.multi_index import MultiIndexFlow as MultiIndexFlow
from .online_sgd.multi_pass import MultiPassLeastSquares as MultiPassLeastSquares
from .regression.nearest_neighbours import NearestNeighbours as NearestNeighbours
from .kernels.layers.network import Network as Network
from .mean_field.noisy import NoisyMeanField as NoisyMeanField
from .kernels.layers.layer import Nonlinear as Nonlinear
from .online_sgd.mixture import OnlineMixture as OnlineMixture
from .online_sgd.pca import OnlinePCA as OnlinePCA
from .online_sgd.effective_flow import OnlineProblem as OnlineProblem
from .online_sgd.single_index import OnlineSingleIndex as OnlineSingleIndex
from ._author import OutputChannel as OutputChannel
from .mean_field.output_scale import OutputScale as OutputScale
from .kernels.layers.layer import Parallel as Parallel
from .classification.perceptron import Perceptron as Perceptron
from .dmft.population import PopulationFlow as PopulationFlow
from .scaling.width_and_steps import PowerLawScaling as PowerLawScaling
from .approximation.quadratic import QuadraticTarget as QuadraticTarget
from .uniform_convergence.rademacher import Rademacher as Rademacher
from .classification.random_features_margin import RandomFeaturesMargin as RandomFeaturesMargin
from .regression.random_features import RandomFeaturesRidge as RandomFeaturesRidge
from .landscapes.interpolating import RandomLabels as RandomLabels
from .kernels.layers.layer import Residual as Residual
from .attention.residual import ResidualFlow as ResidualFlow
from .regression.ridge import Ridge as Ridge
from .scaling.ridge_scaling import RidgeScaling as RidgeScaling
from .spectra.sample_covariance import SampleCovariance as SampleCovariance
from .approximation.sampled_measure import SampledMeasure as SampledMeasure
from .kernels.layers.layer import Serial as Serial
from .online_sgd.large_deviation import SgdLargeDeviation as SgdLargeDeviation
from .attention.single_cluster import SingleCluster as SingleCluster
from .regression.singular_kernel import SingularKernelSmoother as SingularKernelSmoother
from ._author import Spectrum as Spectrum
from .online_sgd.spiked_tensor import SpikedTensor as SpikedTensor
from .online_sgd.spiked_tensor import SpikedTensorDiffusion as SpikedTensorDiffusion
from .spectra.square_matrix import SquareMatrixEdge as SquareMatrixEdge
from .approximation.staircase import Staircase as Staircase
from .online_sgd.streaming import StreamingLeastSquares as StreamingLeastSquares
from .approximation.tangent_interpolation import TangentInterpolation as TangentInterpolation
from .uniform_convergence.thresholds import ThresholdClass as ThresholdClass
from .attention.clustering import TokenClustering as TokenClustering
from .attention.token_flow import TokenFlow as TokenFlow
from .mean_field.two_gaussians import TwoGaussians as TwoGaussians
from .dmft.two_layer import TwoLayerDynamics as TwoLayerDynamics
from .uniform_convergence.uniform_convergence import UniformConvergence as UniformConvergence
from ._author import Values as Values
from .kernels.wide_network import WideNetwork as WideNetwork
from .landscapes.interpolating import WidthDoubleDescent as WidthDoubleDescent
from .alignment.xor import XorAlignment as XorAlignment
from .online_sgd.xor_flow import XorDynamics as XorDynamics
from .online_sgd.xor import XorMixture as XorMixture
from ._author import all_laws as all_laws
from .alignment.blocks import block_spectrum as block_spectrum
from .online_sgd.xor import class_flow as class_flow
from .kernels.convolutional import conv_ntk as conv_ntk
from .kernels.convolutional import convolutional as convolutional
from .approximation.step import degree_two_step as degree_two_step
from .dmft._descent import descent_correlations as descent_correlations
from .uniform_convergence.thresholds import dichotomies as dichotomies
from .landscapes.minima import digits_minima as digits_minima
from .kernels.duals import dual as dual
from .kernels.empirical import empirical_ntk as empirical_ntk
from .kernels.gradient_flow import ensemble_flow as ensemble_flow
from .regression.model_collapse import exact_accumulated as exact_accumulated
from .uniform_convergence.uniform_convergence import exact_deviations as exact_deviations
from .regression.ridge import exact_ridgeless as exact_ridgeless
from .approximation.fixed_dimension import explicit_weights_error as explicit_weights_error
from ._author import find_law as find_law
from .approximation.fixed_dimension import fixed_dimension_constant as fixed_dimension_constant
from .approximation._frank_wolfe import frank_wolfe as frank_wolfe
from .kernels.layers.network import fully_connected as fully_connected
from .regression.linear_model import gaps as gaps
from .approximation.harmonics import gegenbauer_coefficients as gegenbauer_coefficients
from .online_sgd.growth import growth_exponents as growth_exponents
from .attention.circle import growth_rates as growth_rates
from .landscapes.hessian import hessian_inertia as hessian_inertia
from .regression.kernel_floor import kernel_floor as kernel_floor
from .kernels.gradient_flow import kernel_gradient_flow as kernel_gradient_flow
from .kernels.lazy import lazy_certificate as lazy_certificate
from .dmft.solvable import least_squares_descent as least_squares_descent
from .kernels.empirical import linearize as linearize
from ._author import load_laws as load_laws
from .dmft._losses import loss_from_function as loss_from_function
from .spectra.square_matrix import mean_inverse_trace as mean_inverse_trace
from .alignment.mixture_flow import mixture_flow as mixture_flow
from .mean_field.potentials import neuron_interaction as neuron_interaction
from .kernels.deep import nngp as nngp
from .alignment.mixture_flow import noiseless_mixture as noiseless_mixture
from .kernels.deep import ntk as ntk
from ._author import observable as observable
from .mean_field.output_scale_flow import output_scale_flow as output_scale_flow
from ._author import parameter as parameter
from .attention.circle import poisson_radius as poisson_radius
from .uniform_convergence.rademacher import rademacher_linear as rademacher_linear
from .uniform_convergence.rademacher import rademacher_two_layer as rademacher_two_layer
from .classification.perceptron import random_label_margin as random_label_margin
from .kernels.residual import residual_network as residual_network
from .kernels.residual import resnet_ntk as resnet_ntk
from .landscapes.linear_network import saddle_index as saddle_index
from .classification.margin_system import separability_threshold as separability_threshold
from ._author import shared as shared
from .classification.margin_system import solve_margin as solve_margin
from .approximation.step import step_strength as step_strength
from .approximation.tangent_interpolation import tangent_rank as tangent_rank
from .approximation.exact import unexplained_exact as unexplained_exact
from .landscapes.double_descent import width_double_descent as width_double_descent

__all__ = [
    "AdiabaticGrowth",
    "AveragePool",
    "BayesOptimal",
    "CLOSED_FORM",
    "CircleMeanField",
    "CoefficientPrior",
    "ConeFlow",
    "ConvexLoss",
    "Convolution",
    "Cost",
    "Dense",
    "Distillation",
    "Draw",
    "EarlyStopping",
    "EffectiveDynamics",
    "EffectiveFlow",
    "EquiangularTokens",
    "Experiment",
    "FiniteClass",
    "FirstOrderDynamics",
    "Flatten",
    "GaussianEquivalence",
    "GeneralMixtureAlignment",
    "GlobalAverage",
    "GreedyNetwork",
    "Headline",
    "InterpolationTransition",
    "KernelGradientFlow",
    "Law",
    "LazyCertificate",
    "LazyTraining",
    "LeastSquaresDescent",
    "LinearNetwork",
    "LogisticCalibration",
    "LogisticDescent",
    "MarchenkoPastur",
    "MarginEquivalence",
    "Mark",
    "MaxMargin",
    "MeanFieldParticles",
    "MeanFieldSingleIndex",
    "MiddleRegime",
    "Minima",
    "MixtureAlignment",
    "ModelCollapse",
    "MultiIndexFlow",
    "MultiPassLeastSquares",
    "NearestNeighbours",
    "Network",
    "NoisyMeanField",
    "Nonlinear",
    "OnlineMixture",
    "OnlinePCA",
    "OnlineProblem",
    "OnlineSingleIndex",
    "OutputChannel",
    "OutputScale",
    "Parallel",
    "Perceptron",
    "PopulationFlow",
    "PowerLawScaling",
    "QuadraticTarget",
    "Rademacher",
    "RandomFeaturesMargin",
    "RandomFeaturesRidge",
    "RandomLabels",
    "Residual",
    "ResidualFlow",
    "Ridge",
    "RidgeScaling",
    "SampleCovariance",
    "SampledMeasure",
    "Serial",
    "SgdLargeDeviation",
    "SingleCluster",
    "SingularKernelSmoother",
    "Spectrum",
    "SpikedTensor",
    "SpikedTensorDiffusion",
    "SquareMatrixEdge",
    "Staircase",
    "StreamingLeastSquares",
    "TangentInterpolation",
    "ThresholdClass",
    "TokenClustering",
    "TokenFlow",
    "TwoGaussians",
    "TwoLayerDynamics",
    "UniformConvergence",
    "Values",
    "WideNetwork",
    "WidthDoubleDescent",
    "XorAlignment",
    "XorDynamics",
    "XorMixture",
    "all_laws",
    "block_spectrum",
    "class_flow",
    "conv_ntk",
    "convolutional",
    "degree_two_step",
    "descent_correlations",
    "dichotomies",
    "digits_minima",
    "dual",
    "empirical_ntk",
    "ensemble_flow",
    "exact_accumulated",
    "exact_deviations",
    "exact_ridgeless",
    "explicit_weights_error",
    "find_law",
    "fixed_dimension_constant",
    "frank_wolfe",
    "fully_connected",
    "gaps",
    "gegenbauer_coefficients",
    "growth_exponents",
    "growth_rates",
    "hessian_inertia",
    "kernel_floor",
    "kernel_gradient_flow",
    "lazy_certificate",
    "least_squares_descent",
    "linearize",
    "load_laws",
    "loss_from_function",
    "mean_inverse_trace",
    "mixture_flow",
    "neuron_interaction",
    "nngp",
    "noiseless_mixture",
    "ntk",
    "observable",
    "output_scale_flow",
    "parameter",
    "poisson_radius",
    "rademacher_linear",
    "rademacher_two_layer",
    "random_label_margin",
    "residual_network",
    "resnet_ntk",
    "saddle_index",
    "separability_threshold",
    "shared",
    "solve_margin",
    "step_strength",
    "tangent_rank",
    "unexplained_exact",
    "width_double_descent",
]
