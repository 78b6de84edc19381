"""Laws with a population spectrum: special cases, accuracy, experiments, engines, records and refusals."""

import json

import numpy as np
import pytest

import limitlab as ll
from limitlab import Spectrum
from limitlab.errors import Refused
from limitlab.laws import (
    Distillation,
    EarlyStopping,
    FirstOrderDynamics,
    LogisticCalibration,
    MaxMargin,
    ModelCollapse,
    MultiPassLeastSquares,
    PowerLawScaling,
    Ridge,
    RidgeScaling,
    SampleCovariance,
    StreamingLeastSquares,
)

GROUPS = dict(eigenvalues=(0.4, 1.0, 3.0), weights=(0.5, 0.3, 0.2), signal_energy=(0.3, 0.5, 0.4))
SAME = Spectrum.groups([0.4, 1.0, 3.0], [0.5, 0.3, 0.2], energy=[0.3, 0.5, 0.4])
SQUARE = FirstOrderDynamics.points[0]

SPECIAL = [
    (Ridge(ratio=2.0, ridge=0.15, spectrum=SAME), Ridge(ratio=2.0, ridge=0.15, **GROUPS)),
    (EarlyStopping(ratio=0.6, times=(0.5, 2.0), spectrum=SAME), EarlyStopping(ratio=0.6, times=(0.5, 2.0), **GROUPS)),
    (Distillation(spectrum=SAME), Distillation(**GROUPS)),
    (ModelCollapse(real_share=0.3, spectrum=SAME), ModelCollapse(real_share=0.3, **GROUPS)),
    (StreamingLeastSquares(step=0.4, spectrum=SAME), StreamingLeastSquares(step=0.4, **GROUPS)),
    (
        StreamingLeastSquares(step=0.4, spectrum=SAME, dimension=50),
        StreamingLeastSquares(step=0.4, dimension=50, **GROUPS),
    ),
    (MultiPassLeastSquares(step=0.003, spectrum=SAME), MultiPassLeastSquares(step=0.003, **GROUPS)),
    (LogisticCalibration(ratio=0.3, ridge=0.1, spectrum=SAME), LogisticCalibration(ratio=0.3, ridge=0.1, **GROUPS)),
    (
        SampleCovariance(ratio=0.2, spectrum=SAME),
        SampleCovariance(ratio=0.2, eigenvalues=GROUPS["eigenvalues"], weights=GROUPS["weights"]),
    ),
    (MaxMargin(ratio=1.5, spectrum=[2.0, 2.0, 2.0]), MaxMargin(ratio=1.5)),
    (RidgeScaling(spectrum=Spectrum.power_law(2.0, 500, target_exponent=0.3)), RidgeScaling()),
    (
        PowerLawScaling(spectrum=Spectrum.power_law(2.0, 4000, target_exponent=0.7), latent_dimension=4000),
        PowerLawScaling(latent_dimension=4000),
    ),
    (FirstOrderDynamics(**SQUARE, spectrum=[1.0, 1.0]), FirstOrderDynamics(**SQUARE)),
]


@pytest.mark.parametrize(("law", "former"), SPECIAL, ids=lambda law: type(law).__name__)
def test_a_spectrum_with_the_atoms_of_the_groups_gives_the_same_numbers(law, former):
    values, known = law.evaluate(), former.evaluate()
    for name in law.observed():
        expected = np.asarray(known[name], dtype=float)
        if isinstance(law, MaxMargin) and name == "margin":
            expected = expected * np.sqrt(2.0)  # the margin grows with the size of the inputs
        np.testing.assert_allclose(np.asarray(values[name], dtype=float), expected, rtol=1e-10, atol=1e-10)


def test_gradient_descent_in_two_laws():
    spectrum = Spectrum.groups([3.0, 0.5], [0.2, 0.8], energy=[0.9, 0.6])
    general = FirstOrderDynamics(
        loss="square", sample_ratio=1.5, noise=0.5, step=0.1, steps=8, signal_energy=1.5, spectrum=spectrum
    ).theory()
    times = tuple(0.1 * k for k in range(9))
    exact = EarlyStopping(ratio=1 / 1.5, noise=0.5, step=0.1, times=times, spectrum=spectrum).theory()
    for name in ("test_error", "train_error"):
        np.testing.assert_allclose(general[name].values, exact[name].values, rtol=1e-7)


def test_energy_of_a_spectrum_without_energies():
    assert float(Ridge(spectrum=[1.0, 1.0], signal_energy=(2.0,)).theory().test_error) == pytest.approx(
        float(Ridge(signal_energy=(2.0,)).theory().test_error), rel=1e-12
    )
    even, known = (
        LogisticCalibration(ridge=0.1, signal=2.0, spectrum=[3.0, 1.0]),
        dict(eigenvalues=(3.0, 1.0), weights=(1.0, 1.0)),
    )
    np.testing.assert_allclose(even.energies(), LogisticCalibration(ridge=0.1, signal=2.0, **known).energies()[::-1])


POWER = Spectrum.power_law(0.8, 300, energy=1.5)
UNIFORM = Spectrum.from_density(lambda s: 0 * s + 0.5, 1.0, 3.0, energy=lambda s: s)
SPIKED = POWER.with_spikes([20.0], energy=[0.3])

COMPARED = [
    (Ridge(ratio=2.0, ridge=0.15, spectrum=SPIKED), None, 30),
    (Ridge(ratio=1.5, ridge=0.2, spectrum=UNIFORM.with_test(lambda s: 1 / s)), None, 30),
    (EarlyStopping(ratio=0.6, times=(0.5, 2.0), spectrum=SPIKED), None, 30),
    (Distillation(spectrum=POWER), (40, 80), 20),
    (ModelCollapse(spectrum=POWER, generations=(1, 2)), (40, 80), 20),
    (FirstOrderDynamics(**{**SQUARE, "step": 0.15, "steps": 3}, spectrum=SAME), (50, 100), 150),
    (StreamingLeastSquares(step=0.4, spectrum=POWER, times=(0.5, 1.0)), (30, 60), 40),
]


@pytest.mark.parametrize(("law", "sizes", "draws"), COMPARED, ids=lambda law: type(law).__name__)
def test_experiments_with_a_spectrum_do_not_contradict_the_prediction(law, sizes, draws):
    comparison = ll.compare(law, sizes=sizes or (60, 120), seeds=draws, resolution=0.2)
    assert comparison.verdict == "agree", str(comparison)


LONGER = [
    (SampleCovariance(ratio=0.25, spectrum=UNIFORM.with_energy(None)), dict(resolution=0.2)),
    (MaxMargin(ratio=1.5, link="probit", link_strength=2.0, spectrum=UNIFORM), dict(resolution=0.2)),
    (
        LogisticCalibration(ratio=0.3, ridge=0.2, intercept=-0.5, spectrum=UNIFORM),
        dict(sizes=(20, 40), seeds=300, resolution=0.5),
    ),
    (
        MultiPassLeastSquares(step=0.01, samples=60, times=(0.3,), spectrum=POWER.with_energy(1.0)),
        dict(sizes=(30, 60), seeds=150, resolution=0.4),
    ),
    (
        RidgeScaling(
            spectrum=Spectrum.power_law(1.5, 400, target_exponent=0.6),
            latent_dimension=400,
            samples=80,
            width=40,
            ridge=0.003,
        ),
        dict(resolution=0.2),
    ),
    (
        PowerLawScaling(
            spectrum=Spectrum.power_law(1.5, 150, target_exponent=0.2), latent_dimension=150, noise=0.6, steps=(16, 60)
        ),
        dict(resolution=0.2),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "options"), LONGER, ids=lambda law: type(law).__name__)
def test_longer_experiments_with_a_spectrum(law, options):
    comparison = ll.compare(law, **options)
    small = {"calibration_intercept"}  # its limit is so close to 0 that no affordable number of draws resolves it
    assert comparison.verdict != "disagree", str(comparison)
    assert all(row.verdict == "agree" for row in comparison.rows if row.observable not in small), str(comparison)


def test_the_former_parameters_have_the_same_random_streams_and_keys():
    from limitlab._core.draws import key_parameters, seed_entropy

    law = Ridge(ratio=2.0)
    assert "spectrum" not in key_parameters(law)
    assert "test_eigenvalues" not in key_parameters(law)
    assert seed_entropy(law) != seed_entropy(Ridge(ratio=2.0, spectrum=[1.0]))
    # drawn before the parameter existed
    assert float(law.simulate(20, 0).test_error) == pytest.approx(FORMER_DRAW, rel=1e-12)


FORMER_DRAW = 0.9647042901663125


def test_a_smooth_spectrum_states_its_discretisation_error():
    coarse = UNIFORM.variants[0]
    law = Ridge(ratio=1.5, ridge=0.01, spectrum=UNIFORM)
    change = abs(float(law.theory().test_error) - float(law.replace(spectrum=coarse).theory().test_error))
    assert 2 * change <= law.theory().test_error.attrs["numerical_error"] < 1e-9


def test_an_estimated_spectrum_states_its_statistical_error():
    rng = np.random.default_rng(3)
    true = Spectrum.from_list(3 * np.arange(1, 61) ** -0.5)
    X = rng.standard_normal((240, 60)) * np.sqrt(3 * np.arange(1, 61) ** -0.5)
    estimate = Spectrum.from_rows(X).with_energy(1.0)
    exact = Ridge(ratio=0.5, ridge=0.1, spectrum=true).theory()
    law = Ridge(ratio=0.5, ridge=0.1, spectrum=estimate).theory()
    error = law.test_error.attrs["numerical_error"]
    assert 1e-3 < error < 0.2
    assert abs(float(law.test_error) - float(exact.test_error)) < 1.5 * error


@pytest.mark.parametrize("spectrum", [SAME, UNIFORM, SPIKED, Spectrum("power:1.2")], ids=str)
def test_laws_with_a_spectrum_round_trip_through_json(spectrum):
    law = Ridge(spectrum=spectrum)
    assert Ridge.model_validate_json(law.model_dump_json()) == law


def test_sweep_engines_and_stores(tmp_path):
    law = Ridge(ratio=2.0, spectrum=SPIKED)
    over = {"spectrum": [SPIKED, Spectrum("power:0.5:80")], "ridge": [0.1, 0.4]}
    serial = ll.sweep(law, over=over, sizes=[30], seeds=2, store=tmp_path / "s.store")
    again = ll.sweep(law, over=over, sizes=[30], seeds=2, engine="processes")
    for name in law.observed():
        np.testing.assert_array_equal(serial[name].values, again[name].values)
    assert serial.sizes["spectrum"] == 2
    stored = ll.sweep(law, over=over, sizes=[30], seeds=2, store=tmp_path / "s.store")
    np.testing.assert_array_equal(stored.test_error.values, serial.test_error.values)


def test_test_inputs_with_another_covariance():
    groups = dict(ratio=1.5, ridge=0.2, eigenvalues=(1.0, 2.0), weights=(0.4, 0.6), signal_energy=(0.3, 0.5))
    same = Ridge(**groups, test_eigenvalues=(1.0, 2.0)).evaluate()
    for name, value in Ridge(**groups).evaluate().items():
        if name != "accuracy":
            np.testing.assert_allclose(same[name], value, rtol=1e-12)
    # the error is linear in the variances of the test inputs
    noise = 0.25
    parts = [
        Ridge(**groups, test_eigenvalues=t).evaluate()["test_error"] - noise for t in ((3.0, 0.0), (0.0, 0.2), (3.0, 0.2))
    ]
    assert parts[0] + parts[1] == pytest.approx(float(parts[2]), rel=1e-12)
    assert Ridge(**groups, test_eigenvalues=(3.0, 0.2)).null_error() == pytest.approx(3 * 0.3 + 0.2 * 0.5 + noise)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ridge(spectrum=[1.0, -1.0]),
        lambda: Ridge(spectrum="powr:1"),
        lambda: Ridge(spectrum=SAME, eigenvalues=(2.0,)),
        lambda: Ridge(spectrum=SAME, signal_energy=(2.0,)),
        lambda: Ridge(spectrum=SAME, test_eigenvalues=(2.0,)),
        lambda: Ridge(test_eigenvalues=(2.0, 1.0)),
        lambda: EarlyStopping(spectrum=SAME.with_test(lambda s: s)),
        lambda: EarlyStopping(spectrum=SAME, penalty=1.0),
        lambda: Distillation(spectrum=SAME, teacher_groups=(0,)),
        lambda: StreamingLeastSquares(spectrum=SPIKED),
        lambda: LogisticCalibration(spectrum=Spectrum([0.0, 1.0])),
        lambda: LogisticCalibration(spectrum=SAME, signal_energy=(1.0,)),
        lambda: MaxMargin(spectrum=Spectrum([0.0, 1.0])),
        lambda: SampleCovariance(spectrum=SPIKED),
        lambda: RidgeScaling(spectrum=SAME, spectrum_exponent=2.0),
        lambda: RidgeScaling(spectrum=SAME, latent_dimension=np.inf),
        lambda: RidgeScaling(spectrum=SAME).exponents(),
        lambda: PowerLawScaling(spectrum=SAME, step=1e-4).phase(),
        lambda: FirstOrderDynamics(spectrum=SAME, target_spread=False),
        lambda: FirstOrderDynamics(spectrum=SAME, loss="square", steps=2).row_law(),
        lambda: Ridge(test_eigenvalues=(2.0,)).optimal_ridge(),
    ],
)
def test_combinations_that_are_not_covered_are_refused(make):
    with pytest.raises(ValueError, match=r"not allowed|not defined"):
        make()


def test_command_line(tmp_path):
    from typer.testing import CliRunner

    from limitlab.show.cli._app import app

    run = CliRunner().invoke
    path = tmp_path / "spectrum.csv"
    path.write_text("eigenvalue,weight,energy\n0.4,0.5,0.3\n1,0.3,0.5\n3,0.2,0.4\n")
    from_file = run(app, ["predict", "ridge", "--spectrum", str(path), "--ratio", "2", "--ridge", "0.15", "--json"])
    options = "--eigenvalues 0.4,1,3 --weights 0.5,0.3,0.2 --signal-energy 0.3,0.5,0.4 --ratio 2 --ridge 0.15 --json"
    groups = run(app, ["predict", "ridge", *options.split()])
    shown, known = (json.loads(result.stdout)["observables"]["test_error"] for result in (from_file, groups))
    assert shown == pytest.approx(known, rel=1e-12)
    swept = run(app, ["predict", "ridge", "--spectrum", "power:1.2,power:0.5:100"])
    assert swept.exit_code == 0
    assert "power:0.5:100" in swept.output
    assert run(app, ["predict", "ridge", "--spectrum", "[1,-1]"]).exit_code != 0
    with pytest.raises(Refused):
        Spectrum("power:1:2:3:4")
