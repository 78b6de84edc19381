"""Learning curves of your own data, from one eigendecomposition instead of a hundred trained models.

>>> import numpy as np
>>> from limitlab.applied.forecast import Forecast
>>> X = np.random.default_rng(0).standard_normal((300, 20))
>>> y = X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(300)
>>> error = Forecast(kernel="linear").fit(X, y).predict_error(n=[50, 200], ridge=[0.1])
>>> error.test_error.values.round(2).tolist()
[[0.34], [0.25]]
"""

from limitlab.applied.forecast._estimator import Forecast as Forecast
from limitlab.applied.forecast._estimator import ForecastClassifier as ForecastClassifier
from limitlab.applied.forecast._estimator import check_gap as check_gap
from limitlab.applied.forecast._later import LaterStudy as LaterStudy
from limitlab.applied.forecast._later import forecast_against as forecast_against
from limitlab.applied.forecast._later import save_forecast as save_forecast
from limitlab.applied.forecast._measure import compare_with_sklearn as compare_with_sklearn
from limitlab.applied.forecast._own_model import ModelForecast as ModelForecast
from limitlab.applied.forecast._own_model import forecast_model as forecast_model
from limitlab.applied.forecast._study import ForecastStudy as ForecastStudy
from limitlab.applied.forecast._study import draw_curve as draw_curve
from limitlab.applied.forecast._study import forecast_figure as forecast_figure
from limitlab.applied.forecast._study import forecast_other as forecast_other
from limitlab.applied.forecast._study import forecast_study as forecast_study
from limitlab.applied.forecast._trust import ForecastWarning as ForecastWarning
from limitlab.applied.forecast._trust import GapReport as GapReport

__all__ = [
    "Forecast",
    "ForecastClassifier",
    "ForecastStudy",
    "ForecastWarning",
    "GapReport",
    "LaterStudy",
    "ModelForecast",
    "check_gap",
    "compare_with_sklearn",
    "draw_curve",
    "forecast_against",
    "forecast_figure",
    "forecast_model",
    "forecast_other",
    "forecast_study",
    "save_forecast",
]
