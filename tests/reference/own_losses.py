"""Write own_losses.json: gradient descent with losses whose gradients are written by hand. It uses NumPy only."""

import json
from pathlib import Path

import numpy as np
from scipy.special import expit

SIZES, STEPS, STEP, RATIO, OVERLAP = {400: 100, 800: 50}, 10, 0.3, 2, 0.3


def sign(w):
    return np.where(w >= 0, 1.0, -1.0)


def truncated(r, w, e):
    gap = r - w - 0.3 * e
    return np.where(np.abs(gap) < 1, gap, 0.0)


# gradient in r as a function of prediction r, truth w and a standard Gaussian e, and squared norm of the start
LOSSES = {
    "huber": (lambda r, w, e: np.clip(r - w - 0.3 * e, -1, 1), 0.0),
    "logistic of signs": (lambda r, w, e: -sign(w) * expit(-sign(w) * r), 0.0),
    "hinge of signs": (lambda r, w, e: -sign(w) * (sign(w) * r < 1), 0.0),
    "absolute": (lambda r, w, e: np.sign(r - w - 0.3 * e), 0.0),
    "relu neuron": (lambda r, w, e: -(np.maximum(w, 0) + 0.3 * e - np.maximum(r, 0)) * (r > 0), 0.5),
    "quantile": (lambda r, w, e: np.where(w + 0.3 * e > r, -0.8, 0.2), 0.0),
    "squared hinge": (lambda r, w, e: -sign(w) * np.maximum(1 - sign(w) * r, 0), 0.0),
    "truncated": (truncated, 0.0),
    "labels of three levels": (lambda r, w, e: r - np.sign(w) * (np.abs(w) > 0.5) - 0.3 * e, 0.0),
}


def run(gradient, norm, d, seed):
    """Return overlap and squared norm after the last step."""
    rng = np.random.default_rng([seed, d])
    n = RATIO * d
    x, e, truth, theta = rng.standard_normal((n, d)), rng.standard_normal(n), np.eye(d)[0], np.zeros(d)
    if norm:
        rest = rng.standard_normal(d - 1)
        theta = np.concatenate([[OVERLAP], rest / np.linalg.norm(rest) * np.sqrt(norm - OVERLAP**2)])
    w = x @ truth
    for _ in range(STEPS):
        theta = theta - STEP * (x.T @ gradient(x @ theta, w, e)) / n
    return theta @ truth, theta @ theta


def main():
    entries = []
    for name, (gradient, norm) in LOSSES.items():
        outputs = {}
        for d, draws in SIZES.items():
            runs = np.array([run(gradient, norm, d, seed) for seed in range(draws)])
            mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(draws)
            outputs[str(d)] = dict(
                draws=draws,
                overlap=round(float(mean[0]), 5),
                overlap_error=round(float(error[0]), 5),
                norm=round(float(mean[1]), 5),
                norm_error=round(float(error[1]), 5),
            )
        inputs = dict(sample_ratio=RATIO, step=STEP, steps=STEPS, start_norm=norm, start_overlap=OVERLAP if norm else 0.0)
        entries.append(dict(law=name, inputs=inputs, outputs=outputs))
    Path(__file__).with_suffix(".json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
