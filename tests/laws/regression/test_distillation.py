"""Teacher and student: reference values, special cases, when a student wins, finite data, bad input."""

from functools import partial

import numpy as np
import pytest

from limitlab.laws import Distillation, Ridge
from limitlab.laws.regression.distillation import mixed_filter, same_inputs
from references import label, reference

entries = partial(reference, "best_possible")
GROUPS = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))


@pytest.mark.parametrize("entry", entries("distillation"), ids=label)
def test_reference_values(entry):
    found = Distillation(**entry["inputs"]).theory()
    for name, want in entry["outputs"].items():
        assert float(found[name]) == pytest.approx(want, rel=entry["tolerance"]), name


@pytest.mark.parametrize("entry", entries("best_surrogate"), ids=label)
def test_reference_values_of_the_best_surrogate(entry):
    found, want = Distillation(**entry["inputs"]).best_surrogate(), entry["outputs"]
    np.testing.assert_allclose(found.gain, want["gain"], rtol=1e-9)
    assert found.excess_risk == pytest.approx(want["excess_risk_best_surrogate"], rel=1e-9)
    assert found.excess_risk_true_labels == pytest.approx(want["excess_risk_true_labels"], rel=1e-9)


@pytest.mark.parametrize("ratio", [0.7, 2.5])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_without_the_teachers_labels_it_is_ridge(ratio, ridge):
    found = Distillation(ratio=ratio, ridge=ridge, teacher_ridge=0.1, noise=0.6, inputs="same", mix=0.0, **GROUPS).theory()
    plain = Ridge(ratio=ratio, ridge=ridge, noise=0.6, **GROUPS).theory()
    for name in ("bias", "variance", "excess_risk"):
        assert float(found[name]) == pytest.approx(float(plain[name]), rel=1e-11, abs=1e-14), name


@pytest.mark.parametrize("mix", [-1.3, 0.4, 1.0, 2.0])
def test_penalties_that_nearly_agree(mix):
    """The integral between two penalties equals the divided difference where both can be used."""
    args = (1.4, np.array([4.0, 1.0, 0.2]), np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.3, 0.2]))
    a, b = 0.3, 0.2
    plain = type(mixed_filter(a, b, mix))(
        np.array([a, b]), np.array([1 - mix + mix * a / (a - b), -mix * b / (a - b)]), np.zeros(2)
    )
    np.testing.assert_allclose(same_inputs(mixed_filter(a, b, mix), *args)[:2], same_inputs(plain, *args)[:2], rtol=1e-10)


def test_a_teacher_at_its_best_is_not_beaten_when_the_signal_is_isotropic():
    law = Distillation(ratio=0.5, teacher_ratio=0.8, teacher_ridge=0.2, noise=0.5)
    assert law.optimal_ridge() == 0
    assert float(law.replace(ridge=0.0).theory().gain) == pytest.approx(0, abs=1e-12)
    for ridge in (0.01, 0.1, 1.0):
        assert float(law.replace(ridge=ridge).theory().gain) < 0


@pytest.mark.parametrize(("ratio", "want"), [(0.05, 0.4502), (0.3, 0.4624), (1.0, 0.5119)])
def test_a_teacher_with_too_small_a_penalty_is_beaten(ratio, want):
    law = Distillation(ratio=ratio, teacher_ratio=0.8, teacher_ridge=0.5632 / 4, noise=1.0, **GROUPS)
    found = law.replace(ridge=law.optimal_ridge()).theory()
    assert float(found.teacher_excess_risk) == pytest.approx(0.6054, abs=2e-4)
    assert float(found.excess_risk) == pytest.approx(want, abs=2e-4)


def test_two_minima_with_the_same_inputs():
    """Equal penalties, anisotropic signal: mixing with weights outside [0, 1] beats the best ridge (0.42707)."""
    law = Distillation(ratio=0.8, noise=1.0, inputs="same", **GROUPS)
    for ridge, mix, want in ((0.2113, 1.113, 0.41752), (2.026, -1.31, 0.41132)):
        found = law.replace(ridge=ridge, teacher_ridge=ridge, mix=mix).theory()
        assert float(found.excess_risk) == pytest.approx(want, abs=1e-5)


def test_a_weak_teacher():
    law = Distillation(
        ratio=2.0, ridge=0.0, teacher_ratio=0.8, teacher_ridge=0.05, teacher_groups=(0, 1), noise=0.8, **GROUPS
    )
    found = law.theory()
    assert float(found.teacher_excess_risk) == pytest.approx(0.4252, abs=1e-4)
    assert float(found.excess_risk) == pytest.approx(0.4986, abs=1e-4)
    alone = Ridge(ratio=2.0, ridge=0.0, noise=0.8, **GROUPS).theory()
    assert float(alone.excess_risk) == pytest.approx(1.3063, abs=1e-4)


def test_simulation_by_drawing_signal_and_noise():
    law = Distillation(ratio=0.5, ridge=0.2, teacher_ridge=0.1, noise=0.5, inputs="same", mix=0.6)
    rng, p, n, found = np.random.default_rng(0), 20, 40, []
    for _ in range(500):
        beta = rng.standard_normal(p)
        beta /= np.linalg.norm(beta)
        X = rng.standard_normal((n, p))
        y = X @ beta + 0.5 * rng.standard_normal(n)
        teacher = np.linalg.solve(X.T @ X / n + 0.1 * np.eye(p), X.T @ y / n)
        b = np.linalg.solve(X.T @ X / n + 0.2 * np.eye(p), X.T @ (0.4 * y + 0.6 * X @ teacher) / n)
        found.append(np.sum((b - beta) ** 2))
    averaged = float(law.simulate_batch(p, range(60)).excess_risk.mean())
    assert np.mean(found) == pytest.approx(averaged, abs=4 * np.std(found) / np.sqrt(500))


def test_at_the_interpolation_threshold():
    found = Distillation(ratio=1.0, ridge=0.0, teacher_ridge=0.1, inputs="same").theory()
    assert np.isinf(found.excess_risk)
    assert np.isinf(Distillation(ratio=1.0, ridge=0.0, student_noise=0.1).theory().excess_risk)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (dict(teacher_groups=()), "teacher_groups"),
        (dict(teacher_groups=(1,)), "teacher_groups"),
        (dict(mix=0.5), "mix = 0.5 .*fresh"),
        (dict(inputs="same", student_noise=0.1), "student_noise"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        Distillation(**given)
