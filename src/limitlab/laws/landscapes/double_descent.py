"""Double descent in width on real images, by networks that are trained to interpolation at many widths.

Let n be the number of training images times the number of outputs, and p the number of parameters. The test error of networks that are
trained to the end has a peak near p = n and falls again beyond it. At the peak the train loss drops by ten orders of magnitude
(docs/theory/interpolating_networks.md, section 3). This is an observation and not a theorem. The law
`WidthDoubleDescent` gives the limit of the second descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import one_of, whole
from limitlab.errors import Refused
from limitlab.laws.landscapes._levenberg import ITERATIONS, STEPS, Loss, TanhNetwork, first_order, levenberg_marquardt
from limitlab.models.datasets import Images, Labels, Task, image_task

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["width_double_descent"]

Array = NDArray[Any]
Training = Literal["levenberg", "adam"]


def width_double_descent(
    widths: Sequence[int],
    samples: int = 300,
    flips: float = 0.1,
    depth: int = 2,
    loss: Loss = "square",
    seeds: int | Sequence[int] = 5,
    *,
    images: Images = "digits",
    labels: Labels = "parity",
    components: int = 10,
    training: Training = "levenberg",
    iterations: int | None = None,
    tests: int | None = None,
) -> xr.Dataset:
    """Train networks of many widths, to interpolation (Levenberg-Marquardt, double precision) or by Adam, and measure their errors.

    Parameters
    ----------
    widths
        Neurons N of every hidden layer. Two layers of one output have p = N (d + 2) + 1 parameters.
    samples, flips
        Training images, and the share of them with a wrong label.
    depth
        Number of weight matrices, at least 2.
    loss : {"square", "squared_hinge"}
        "square", or "squared_hinge", which is the mean of max(0, 1 - y f)^2. Samples with y f of at least 1 do not contribute to it.
    seeds
        Number of splits and starts, or their seeds.
    images : {"digits", "mnist"}
        As in `limitlab.models.datasets.image_task`.
    labels : {"parity", "classes"}
        As in `limitlab.models.datasets.image_task`.
    components
        Number of principal components of the images.
    training : {"levenberg", "adam"}
        "levenberg" trains to interpolation. Its work grows as the cube of the residuals (ten per image with ten classes), so it suits
        some hundred images. "adam" suits thousands of images. It does not interpolate near the threshold, and the peak is blurred.
    iterations
        Largest number of iterations of a training (default: 150, or 4,000 steps of Adam).
    tests
        Test images (default: all others).

    Returns
    -------
    xarray.Dataset
        Over `width` and `seed`: `train_loss` and `test_loss` (mean loss, on right labels), `test_classification_error`, `unsatisfied`
        (residuals that are not 0); over `width`: `parameters_over_samples` (per residual).

    Examples
    --------
    >>> runs = width_double_descent([2, 30], samples=60, seeds=2)
    >>> runs.train_loss.sizes, bool((runs.train_loss.sel(width=30) < 1e-10).all())
    (Frozen({'width': 2, 'seed': 2}), True)
    """
    import xarray as xr

    if not len(widths) or min(widths) < 1:
        raise Refused(f"widths = {list(widths)!r} are not allowed: must be whole numbers of at least 1")
    whole("depth", depth, least=2)
    one_of("loss", loss, ("square", "squared_hinge"))
    one_of("training", training, ("levenberg", "adam"))
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    tables: dict[str, list[list[float]]] = {}
    networks = [TanhNetwork((components, *(int(width),) * (depth - 1), 1 if labels == "parity" else 10)) for width in widths]
    tasks = [image_task(images, samples, flips, components, seed, labels, tests) for seed in numbers]
    for network in networks:
        runs = [
            _trained(network, task, loss, np.random.default_rng([seed, network.widths[1]]), training, iterations)
            for seed, task in zip(numbers, tasks, strict=True)
        ]
        for name in runs[0]:
            tables.setdefault(name, []).append([run[name] for run in runs])
    residuals = tasks[0].y.size
    data: dict[str, Any] = {name: (("width", "seed"), np.array(table)) for name, table in tables.items()}
    data["parameters_over_samples"] = ("width", np.array([network.parameters / residuals for network in networks]))
    return xr.Dataset(data, {"width": list(map(int, widths)), "seed": numbers})


def _trained(
    network: TanhNetwork, task: Task, loss: Loss, rng: np.random.Generator, training: Training, iterations: int | None
) -> dict[str, float]:
    start = network.start(rng)
    if training == "levenberg":
        fit = levenberg_marquardt(network, start, task.X, task.y, loss, iterations=iterations or ITERATIONS)
    else:
        fit = first_order(network, start, task.X, task.y, rng, loss, iterations=iterations or STEPS)
    f = network.outputs(fit.theta, task.X_test)
    gap = task.y_test - f if loss == "square" else np.maximum(0.0, 1 - task.y_test * f)
    wrong = f * task.y_test <= 0 if f.shape[1] == 1 else f.argmax(axis=1) != task.y_test.argmax(axis=1)
    return dict(
        train_loss=fit.loss,
        test_loss=float(np.mean(gap**2)),
        test_classification_error=float(np.mean(wrong)),
        unsatisfied=float(fit.unsatisfied),
    )
