"""The class of the classes of laws: help made from the declaration, names worth completing, one sentence for a nameless value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

KEPT = {"model_dump", "model_dump_json", "model_fields", "model_validate", "model_validate_json"}
"""What of pydantic's own names a reader of a law may want."""
HIDDEN = {name for name in dir(BaseModel) if not name.startswith("__")} - KEPT


def worth_knowing(names: Any) -> list[str]:
    """Names without those that pydantic brings along.

    >>> worth_knowing(["theory", "model_dump", "parse_obj", "_copy_and_set_values"])
    ['model_dump', 'theory']
    """
    return sorted(name for name in names if name not in HIDDEN and (not name.startswith("_") or name.startswith("__")))


class _Help:
    """The docstring of a class of laws, made when it is asked for."""

    def __get__(self, law: Any, kind: type) -> str:
        from limitlab._core.about import described

        return "What every class of laws can do before one of its laws is made." if law is None else described(law)

    def __set__(self, law: Any, text: str) -> None:
        raise AttributeError("the help of a law is made from its declaration: write it there")


class LawType(ModelMetaclass):
    """What every class of laws can do before one of its laws is made."""

    if not TYPE_CHECKING:  # type checkers read the declaration themselves
        __doc__ = _Help()

        def __call__(cls, *values: Any, **parameters: Any) -> Any:
            """A law of these parameters; values without names are refused with a sentence."""
            if values:
                first, name = ", ".join(map(repr, values))[:80], cls.__name__
                known = list(cls.model_fields)
                example = f"{name}({known[0]}={values[0]!r})" if known else f"{name}()"
                raise TypeError(
                    f"{name}({first}) does not say which parameter is meant: give it by name, such as {example} "
                    f"(the parameters are {', '.join(known)})"
                )
            return super().__call__(**parameters)

    def __dir__(cls) -> list[str]:
        return worth_knowing(super().__dir__())
