"""The fit of a scaling law: reference values, designs that decide nothing, intervals and their coverage, warnings, refusals."""

import time

import numpy as np
import pytest

from limitlab.applied import scaling_fit, scaling_plan, scaling_study
from limitlab.numerics import additive_powers as form
from references import reference

ENTRIES = reference("scaling", "scaling_fit")
TRUTH = dict(E=1.82, A=482.0, B=2085.0, a=0.348, b=0.366)


def table(N, D, noise=0.0, seed=0, truth=TRUTH, **more):
    t = truth | more
    loss = t["E"] + t["A"] * N ** -t["a"] + t["B"] * D ** -t["b"]
    return N, D, loss * np.exp(noise * np.random.default_rng(seed).standard_normal(N.size))


def grid(sizes=8, data=6):
    return (x.ravel() for x in np.meshgrid(np.geomspace(5e7, 1e10, sizes), np.geomspace(1e9, 3e11, data), indexing="ij"))


def iso_flop():
    budgets, sizes = np.geomspace(1e19, 1e22, 6), np.geomspace(0.2, 5, 8)
    N = (np.sqrt(budgets / 120)[:, None] * sizes).ravel()
    return N, (budgets[:, None] / (6 * np.sqrt(budgets / 120)[:, None] * sizes)).ravel()


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robust", [True, False])
def test_noise_free_table_gives_the_truth(robust):
    inputs, wanted = ENTRIES[0]["inputs"], ENTRIES[0]["outputs"]
    N, D = (x.ravel() for x in np.meshgrid(inputs["N"], inputs["D"], indexing="ij"))
    fit = scaling_fit(*table(N, D), robust=robust)
    assert pytest.approx(wanted["E"], rel=1e-6) == fit.E
    assert pytest.approx(wanted["A"], rel=1e-4) == fit.A
    assert pytest.approx(wanted["B"], rel=1e-4) == fit.B
    assert fit.a == pytest.approx(wanted["a"], abs=1e-6)
    assert fit.b == pytest.approx(wanted["b"], abs=1e-6)
    for compute, size, data in zip(inputs["compute"], wanted["optimal_N"], wanted["optimal_D"], strict=True):
        assert tuple(fit.optimum(compute)) == pytest.approx((size, data), rel=1e-4)


def test_reference_table_with_noise():
    inputs, wanted = ENTRIES[1]["inputs"], ENTRIES[1]["outputs"]
    fit = scaling_fit(inputs["N"], inputs["D"], inputs["loss"], robust=False, level=inputs["level"])
    assert pytest.approx(wanted["E"], rel=1e-4) == fit.E
    assert fit.a == pytest.approx(wanted["a"], abs=1e-4)
    assert fit.b == pytest.approx(wanted["b"], abs=1e-4)
    assert fit.residual_sd == pytest.approx(wanted["residual_sd"], rel=1e-4)
    assert fit.interval("a") == pytest.approx(wanted["profile_a"], abs=5e-4)
    assert fit.interval("b") == pytest.approx(wanted["profile_b"], abs=5e-4)
    assert tuple(fit.optimum(1e22)) == pytest.approx((wanted["optimal_N"], wanted["optimal_D"]), rel=1e-3)


def test_reference_ray():
    inputs = ENTRIES[2]["inputs"]
    fit = scaling_fit(*table(np.array(inputs["N"]), np.array(inputs["D"])))
    assert fit.separable is ENTRIES[2]["outputs"]["separable"]


# -- designs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "slope", "exponents", "smallest"),
    [
        (0.0, 1.0, (0.348, 0.366), 5e7),
        (0.005, 1.0, (0.348, 0.366), 1e6),
        (0.005, 0.7, (0.25, 0.5), 5e7),
        (0.0, 1.0, (0.3, 1.2), 1e6),
        (0.01, 1.3, (0.3, 1.2), 5e7),
    ],
)
def test_every_ray_is_flagged(noise, slope, exponents, smallest):
    """Also where the condition number alone would let it through."""
    N = np.geomspace(smallest, 1e10, 24)
    amplitudes = dict(A=0.5 * 1e8 ** exponents[0], B=0.5 * 1e9 ** exponents[1])
    fit = scaling_fit(*table(N, 20 * 1e8 ** (1 - slope) * N**slope, noise, a=exponents[0], b=exponents[1], **amplitudes))
    assert not fit.separable
    assert fit.interval("a") == (-np.inf, np.inf)
    assert "not determined by these data" in str(fit)
    with pytest.raises(ValueError, match="add runs with another D/N"):
        fit.optimum(1e22)
    E = fit.interval("E")
    assert E[0] <= fit.E <= E[1]


def test_a_ray_keeps_its_curve():
    N = np.geomspace(5e7, 1e10, 24)
    N, D, loss = table(N, 20 * N)
    np.testing.assert_allclose(scaling_fit(N, D, loss).predict(N, D), loss, rtol=1e-4)


@pytest.mark.parametrize("design", [grid, iso_flop])
def test_useful_designs_are_separable(design):
    fit = scaling_fit(*table(*design(), 0.01))
    assert fit.separable
    assert fit.condition < 200


def test_planned_errors_are_those_of_the_study():
    """The wider the spread of D/N around a ray, the smaller the errors and the condition; a grid gives what a study measured."""
    N = np.geomspace(5e7, 1e10, 48)
    plans = [scaling_plan(N, 20 * N * 10 ** (spread * np.tile([-1, 1], 24)), 0.005, **TRUTH) for spread in (0.02, 0.1, 0.5)]
    for name in ("a", "log N", "condition"):
        assert plans[0][name] > 3 * plans[1][name] > 6 * plans[2][name], name
    assert scaling_plan(*grid(), 0.01, **TRUTH)["a"] == pytest.approx(0.021, abs=1e-3)


# -- intervals --------------------------------------------------------------------------------------------------------


def test_profiles_hold_their_cost():
    """At the ends of the profile of a, refitting everything else costs what the definition says."""
    from scipy.optimize import least_squares
    from scipy.stats import f

    fit = scaling_fit(*table(*grid(), 0.01), robust=False)
    rise = fit.residual_sd**2 * f.ppf(0.95, 1, fit.runs.n.size - 5)
    for end in fit.interval("a"):

        def residual(free, end=end):
            return form.model(np.array([free[0], free[1], free[2], end, free[3]]), fit.runs)[0] - fit.runs.log_loss

        found = 2 * least_squares(residual, np.delete(fit.best.theta, 3), xtol=1e-14, ftol=1e-14).cost
        assert found - fit.best.cost == pytest.approx(rise, rel=1e-3)


def test_bootstrap_is_close_to_the_profiles():
    fit = scaling_fit(*table(*grid(), 0.01), robust=False)
    boot = fit.bootstrap(100, compute=(1e23,))
    for name in ("E", "a", "b"):
        low, high = fit.interval(name)
        assert boot[name][1] - boot[name][0] == pytest.approx(high - low, rel=0.3)
    low, high = np.log(fit.interval("N", compute=1e23))
    assert np.log(boot["N at 1e+23"][1] / boot["N at 1e+23"][0]) == pytest.approx(high - low, rel=0.3)


def test_bad_runs_are_forgiven():
    N, D, loss = table(*grid(), 0.01)
    loss[[3, 20, 40]] *= np.exp([0.15, -0.12, 0.2])
    errors = [abs(scaling_fit(N, D, loss, robust=robust).a - TRUTH["a"]) for robust in (True, False)]
    assert errors[0] < 0.5 * errors[1]


def test_an_end_that_is_open_is_said_to_be():
    """Little data in D only: the exponent b has no upper end."""
    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(1e8, 1e10, 6), np.array([1e12, 1.5e12, 2e12])))
    fit = scaling_fit(*table(N, D, 0.01))
    assert np.isinf(fit.interval("b")).any()
    assert "open" in str(fit) or "not determined" in str(fit)


def covered(design, noise, tables, robust):
    hits = dict(E=0, a=0, b=0, N=0)
    N, D = design()
    truth = scaling_fit(*table(N, D)).optimum(1e23).N
    for seed in range(tables):
        fit = scaling_fit(*table(N, D, noise, seed), robust=robust)
        for name in ("E", "a", "b"):
            low, high = fit.interval(name)
            hits[name] += low <= TRUTH[name] <= high
        low, high = fit.interval("N", compute=1e23)
        hits["N"] += low <= truth <= high
    return {name: count / tables for name, count in hits.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("design", "noise"), [(grid, 0.01), (iso_flop, 0.01)])
def test_coverage(design, noise):
    found = covered(design, noise, 200, robust=True)
    assert all(0.90 <= share <= 0.99 for share in found.values()), found


def test_speed_of_a_fit_with_all_profiles():
    N, D, loss = table(*grid(10, 5), 0.01)
    began = time.process_time()
    fit = scaling_fit(N, D, loss)
    for name in form_names():
        fit.interval(name)
    fit.interval("N", compute=1e23)
    assert time.process_time() - began < 3  # processor time, so that a busy machine does not matter


def form_names():
    return ("E", "A", "B", "a", "b")


# -- warnings and refusals --------------------------------------------------------------------------------------------


def test_a_product_term_in_the_data_is_noticed_with_its_size():
    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(30, 3000, 8), np.geomspace(1e2, 1e6, 9)))
    loss = N**-2.0 + D**-1.2 + 3 * N**-1.0 * D**-0.5
    fit = scaling_fit(N, D, loss * np.exp(0.005 * np.random.default_rng(0).standard_normal(N.size)), flops=1.0)
    (text,) = [text for text in fit.warnings if "product term" in text]
    assert "by a factor" in text
    assert fit.lack_of_fit.misfit > 0.05
    product = fit.with_product
    assert product.lack_of_fit.misfit < 0.3 * fit.lack_of_fit.misfit
    assert fit.form_error() > 1.3


@pytest.mark.parametrize(("beta", "least"), [(0.7, 1.2), (1.3, 3.0)], ids=["II", "III"])
def test_phases_two_and_three_are_warned_about_with_the_size_of_the_error(beta, least):
    """Tables of the solvable law: the factor in the warning points the right way, and the product term moves towards the truth."""
    from limitlab.laws import PowerLawScaling

    widths, steps = np.geomspace(30, 3000, 8), np.geomspace(1e2, 1e6, 9)
    law = PowerLawScaling(target_exponent=beta, latent_dimension=1e7, step=0.3, steps=steps)
    loss = np.ravel([law.replace(width=width).theory().excess_risk for width in widths])
    fit = scaling_fit(np.repeat(widths, 9), np.tile(steps, 8), loss, robust=False, flops=1.0)
    (text,) = [text for text in fit.warnings if "product term" in text]
    assert f"factor {fit.form_error():.3g}" in text
    assert fit.form_error(1e10) > least
    truth = float(law.frontier(1e10).width)
    wrong, better = (abs(np.log(one.optimum(1e10).N / truth)) for one in (fit, fit.with_product))
    assert better < 0.75 * wrong


def test_no_warning_where_the_form_is_right():
    assert scaling_fit(*table(*grid(), 0.01)).warnings == ()


def test_other_warnings():
    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(5e7, 1e10, 4), np.geomspace(1e9, 3e11, 12)))
    assert "training curve" in " ".join(scaling_fit(*table(N, D, 0.01)).warnings)
    fit = scaling_fit(*table(*grid(), 0.05), replicate_sd=0.01)
    assert "exceed the replicate noise" in " ".join(fit.warnings)
    assert "lowest value 0" in " ".join(scaling_fit(*table(*grid(), 0.0, E=0.0)).warnings)
    assert fit.trust(1e27).endswith("times beyond the largest run")
    assert fit.trust(1e18) == "inside the runs"


def test_compute_instead_of_data():
    N, D, loss = table(*iso_flop(), 0.01)
    fit, same = scaling_fit(N, None, loss, compute=6 * N * D), scaling_fit(N, D, loss)
    assert fit.a == pytest.approx(same.a, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda N, D, L: (N[:5], D[:5], L[:5]), "5 runs are not allowed"),
        (lambda N, D, L: (N, D[:-1], L), "different lengths"),
        (lambda N, D, L: (N, D, np.where(L.max() == L, -1.0, L)), "loss = -1 in row"),
        (lambda N, D, L: (N * 0 + 1e8, D, L), "1 values of N are not allowed"),
        (lambda N, D, L: (N, D * np.nan, L), "D = nan in row 1"),
    ],
)
def test_bad_tables_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        scaling_fit(*change(*table(*grid())))


def test_bad_options_are_refused():
    fit = scaling_fit(*table(*grid(), 0.01))
    for call, message in (
        (lambda: fit.interval("c"), "must be one of E, A, B, a, b"),
        (lambda: fit.interval("N"), "needs a compute"),
        (lambda: fit.optimum(-1.0), "compute = -1 is not allowed"),
        (lambda: scaling_fit(*table(*grid()), level=2.0), "level = 2"),
        (lambda: scaling_fit(*table(*grid()), flops=0.0), "flops = 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_colours_in_a_table_names_with_spaces_and_whole_lines_of_comments(tmp_path):
    """The character # starts a comment only at the start of a line, and a name may contain spaces."""
    N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(1e8, 1e10, 4), np.geomspace(1e9, 1e11, 4)))
    loss = 1.8 + 480 * N**-0.35 + 2100 * D**-0.37
    lines = ["# read off a figure", "Model Size,colour,Training FLOP,loss"]
    lines += [f"{n},#faebdd,{6 * n * d},{value}" for n, d, value in zip(N, D, loss, strict=True)]
    file = tmp_path / "figure.csv"
    file.write_text("\n".join(lines))
    study = scaling_study(file, compute=1e21)
    assert study.fit.a == pytest.approx(0.35, abs=1e-3)
    assert scaling_study(file, size="model size", budget="Training FLOP").fit.b == pytest.approx(0.37, abs=1e-3)


def test_repeated_runs_are_not_points_of_one_curve():
    """Thirty runs at each of nine points have three values of D for each N, so there is no warning about points of one curve."""
    N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(1e8, 1e10, 3), np.geomspace(1e9, 1e11, 3)))
    N, D = np.repeat(N, 30), np.repeat(D, 30)
    noise = 0.05 * np.random.default_rng(0).standard_normal(N.size)
    fit = scaling_fit(N, D, (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(noise))
    assert not any("values of D" in line for line in fit.warnings)


def test_an_interval_whose_search_leaves_the_bounds_of_the_exponents():
    """A table that hardly separates the terms has an interval of the best N. The search tries exponents below their bound."""
    rng = np.random.default_rng(2)
    N = np.geomspace(1e8, 1e9, 5)[rng.integers(0, 5, 200)]
    D = 20 * N * np.exp(0.3 * rng.standard_normal(200))
    fit = scaling_fit(N, D, (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.05 * rng.standard_normal(200)))
    assert fit.separable
    low, high = fit.interval("N", compute=1e21)
    assert low <= fit.optimum(1e21).N <= high
