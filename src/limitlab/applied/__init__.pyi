# Written by `python -m limitlab._core.index`; do not edit.
"""Tools that apply the laws to your own data or network."""

from .table_components import Components as Components
from .forecast import Forecast as Forecast
from .forecast import ForecastClassifier as ForecastClassifier
from .forecast import ForecastStudy as ForecastStudy
from .forecast import ForecastWarning as ForecastWarning
from .forecast import GapReport as GapReport
from .forecast import LaterStudy as LaterStudy
from .forecast import ModelForecast as ModelForecast
from .network_kernel import NetworkKernel as NetworkKernel
from .pilot import Pilot as Pilot
from .study_size import SampleSize as SampleSize
from .scaling.fit import ScalingFit as ScalingFit
from .scaling.study import ScalingStudy as ScalingStudy
from .study_criteria import SizeCriteria as SizeCriteria
from .training_curve import TrainingForecast as TrainingForecast
from .forecast import check_gap as check_gap
from .forecast import compare_with_sklearn as compare_with_sklearn
from .table_components import components as components
from .study_criteria import continuous_size as continuous_size
from .forecast import draw_curve as draw_curve
from .forecast import forecast_against as forecast_against
from .forecast import forecast_figure as forecast_figure
from .forecast import forecast_model as forecast_model
from .forecast import forecast_other as forecast_other
from .forecast import forecast_study as forecast_study
from .stopping import plan_stopping as plan_stopping
from .pilot import read_pilot as read_pilot
from .forecast.tables import read_table as read_table
from .study_size import sample_size as sample_size
from .study_size import sample_size_figure as sample_size_figure
from .forecast import save_forecast as save_forecast
from .scaling.fit import scaling_fit as scaling_fit
from .scaling.study import scaling_fit_figure as scaling_fit_figure
from .scaling.study import scaling_plan as scaling_plan
from .scaling.study import scaling_study as scaling_study
from .spectrum_blocks import spectrum as spectrum
from .spectrum_blocks import spectrum_along as spectrum_along
from .stopping import stop as stop
from .training_curve import stop_training as stop_training
from .stopping import stopping_figure as stopping_figure
from .stopping import stopping_table as stopping_table
from .study_criteria import survival_size as survival_size
from .study_criteria import validation_size as validation_size

__all__ = [
    "Components",
    "Forecast",
    "ForecastClassifier",
    "ForecastStudy",
    "ForecastWarning",
    "GapReport",
    "LaterStudy",
    "ModelForecast",
    "NetworkKernel",
    "Pilot",
    "SampleSize",
    "ScalingFit",
    "ScalingStudy",
    "SizeCriteria",
    "TrainingForecast",
    "check_gap",
    "compare_with_sklearn",
    "components",
    "continuous_size",
    "draw_curve",
    "forecast_against",
    "forecast_figure",
    "forecast_model",
    "forecast_other",
    "forecast_study",
    "plan_stopping",
    "read_pilot",
    "read_table",
    "sample_size",
    "sample_size_figure",
    "save_forecast",
    "scaling_fit",
    "scaling_fit_figure",
    "scaling_plan",
    "scaling_study",
    "spectrum",
    "spectrum_along",
    "stop",
    "stop_training",
    "stopping_figure",
    "stopping_table",
    "survival_size",
    "validation_size",
]
