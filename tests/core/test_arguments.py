"""Errors for arguments of another type: the parameter, its value, and what it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

import limitlab as ll
from limitlab._core.arguments import explained, fits, in_words
from limitlab.errors import Refused


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, float, True), (True, float, False), (np.float32(1), float, True), ("1", float, False), (None, float | None, True),
        (2.0, int, True), (2.5, int, False), (10**400, int, True), ([1, 2], Sequence[int], True), ([1, "a"], Sequence[int], False),
        ("ab", Sequence[str], False), (np.array([1.0]), Sequence[float], True), ({"a": 1.0}, Mapping[str, float], True),
        ({"a": None}, Mapping[str, float], False), ({1: 1.0}, Mapping[str, float], False), ((1, 2), tuple[float, float], True),
        ((1,), tuple[float, float], False), ("a", Literal["a", "b"], True), ([], Literal["a"], False), (print, Callable[[], None], True),
        (object(), Any, True), (10**400, np.ndarray, False),
    ],
)  # fmt: skip
def test_types_are_decided(value: Any, kind: Any, expected: bool) -> None:
    assert fits(value, kind) is expected


def test_types_in_words() -> None:
    assert (
        in_words(Mapping[str, Sequence[float]] | None)
        == "a mapping from a text to a list of which each entry is a number, or None"
    )
    assert in_words(tuple[float, float]) == "2 values, each a number"


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda law: ll.optimal(law, over="ridge", bounds=3), "bounds"),
        (lambda law: ll.plan(law, target={"test_error": "low"}, solve_for="ratio"), "target"),
        (lambda law: law.simulate_batch(4, object()), "seeds"),
        (lambda law: ll.reproduce(None), "path"),
    ],
)
def test_an_argument_of_another_type_is_named(call: Callable[[Any], Any], parameter: str) -> None:
    with pytest.raises(ValueError, match=rf"^{parameter}\b.* is not allowed") as caught:
        call(ll.laws.Ridge())
    assert isinstance(caught.value, Refused)


def test_a_name_that_is_no_text() -> None:
    with pytest.raises(Refused, match="no parameter None: give a name as a text"):
        ll.optimal(ll.laws.Ridge(), over=None)  # type: ignore[arg-type]


def test_errors_that_are_meant_for_the_user_stay_as_they_are() -> None:
    @explained
    def answer(number: float) -> float:
        raise Refused(f"number = {number}: try another")

    @explained
    def wrong(number: float) -> float:
        return number + None  # type: ignore[operator]

    with pytest.raises(Refused, match="try another"):
        answer(1.0)
    with pytest.raises(TypeError, match="unsupported operand"):  # a mistake in code of another author
        wrong(1.0)
    with pytest.raises(Refused, match="missing a required argument"):
        ll.optimal()  # type: ignore[call-arg]
