"""The laws at work on a user's own data or network: forecasts of learning curves, when to stop training, spectra of Hessians."""

from limitlab._core.exports import found, lazily

_HOMES = found(__name__, __path__)
__all__ = sorted(_HOMES)
__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
