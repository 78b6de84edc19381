"""The parameters and observables that several laws share, with meaning and symbol, and the former names of parameters.

A name has the same meaning in every law. A law does not repeat the description and the symbol of a name in these lists, but it may
declare another symbol. A name that only one law uses is described in the declaration of that law.
"""

from __future__ import annotations

from math import inf

PARAMETERS: dict[str, tuple[str, str]] = {
    # data
    "samples": ("number of samples", "n"),
    "ratio": ("features per sample", r"\gamma = p/n"),
    "sample_ratio": ("samples per input dimension", r"\psi_2 = n/d"),
    "test_ratio": ("test samples per dimension", "M/d"),
    "dimension": ("dimension", "d"),
    "tokens": ("number of tokens", "n"),
    "inputs": ("inputs", "X"),
    "targets": ("labels of the data set", "y"),
    "entries": ("law of the independent entries of the inputs", "z"),
    "eigenvalues": ("population eigenvalue of each group", "s_k"),
    "weights": ("share of each group", "w_k"),
    "density": ("density", r"\rho_0"),
    "labels": ("signal and noise of the labels, averaged in closed form or drawn", ""),
    "label_size": ("largest label", "y"),
    "batch": ("samples per step", "B"),
    "channel": ("how the label depends on the score", ""),
    # target and noise
    "signal": ("norm of the linear part of the target", "r"),
    "signal_energy": ("squared norm of the coefficients behind the labels", "b_k"),
    "target": ("target by its coefficients", r"\hat\varphi"),
    "target_function": ("target as a function", r"\varphi"),
    "target_exponent": ("exponent of the target coefficients", r"\beta"),
    "teacher": ("function that makes the labels", r"\theta_*"),
    "smoothness": ("Holder exponent of the target", r"\beta"),
    "amplitude": ("size of the cusp", "C"),
    "link_strength": ("strength of the link", "b"),
    "snr": ("signal-to-noise ratio", r"\lambda"),
    "noise": ("standard deviation of the label noise", r"\tau"),
    # model
    "model": ("model that is fitted", ""),
    "width": ("number of neurons", "N"),
    "width_ratio": ("random features per input dimension", r"\psi_1 = N/d"),
    "samples_per_weight": ("samples per first-layer weight", r"\alpha = n/(md)"),
    "layers": ("number of weight matrices", "L"),
    "activation": ("activation of the neurons", r"\sigma"),
    "kernel": ("coefficients of h(q) = E sigma sigma' from degree 0", "h"),
    "loss": ("loss", ""),
    "second_layer": ("second-layer weight", "a"),
    "scale": ("factor of the network's output", r"\alpha"),
    "weight_std": ("standard deviation of the weights", "w"),
    "bias_std": ("standard deviation of the biases", "b"),
    "ridge": ("ridge penalty", r"\lambda"),
    "penalty": ("penalty on the squared norm of the weights", r"\Lambda_t"),
    "regularizer": ("penalty on the squared norm of the weights", r"\alpha"),
    "beta": ("inverse temperature of the attention", r"\beta"),
    "normalised": ("softmax attention (SA); otherwise exp(score)/n (USA)", ""),
    # start
    "start_overlap": ("overlap at the start", "m_0"),
    "start_residual": ("squared length outside the signal at the start", "q(0)"),
    "start_correlation": ("inner product of two neurons at the start", "C_o(0,0)"),
    "start_second_layer": ("second-layer weight at the start", "a_0"),
    "start_mean": ("mean weight along the teacher at the start", "m(0)"),
    "start_std": ("standard deviation of the weights at the start", r"\sqrt{s(0)}"),
    "start_distribution": ("distribution at the start", r"\rho_0"),
    "start_distance": ("distance of the start from the target", r"D = |\theta_0 - \beta|"),
    # algorithm, numerics and experiment
    "times": ("times", "t"),
    "step": ("step size of the algorithm", ""),
    "steps": ("iterations of the algorithm", "k"),
    "solver_steps": ("points of the numerical grid", ""),
    "tolerance": ("tolerance of the integration", ""),
    "refinement": ("refinement of the numerical grids", ""),
    "quasi_points": ("quasi-random points of an average", ""),
    "paths": ("sampled paths of the prediction process", ""),
    "replicas": ("runs averaged in one draw", ""),
    "networks": ("networks trained in one draw", ""),
    "experiment_model": ("model that is simulated", ""),
}
"""Description and LaTeX symbol of the parameters that at least two laws declare."""

OBSERVABLES: dict[str, tuple[str, str]] = {
    "test_error": ("mean squared error on a new noisy label", r"E_{\mathrm{test}}"),
    "risk": ("expected squared error", r"R"),
    "excess_risk": ("mean squared error on a new noiseless label", r"R"),
    "train_error": ("mean squared residual on the training set", r"E_{\mathrm{train}}"),
    "bias": ("squared bias given the inputs", r"B"),
    "variance": ("variance given the inputs", r"V"),
    "mean_bias": ("mean bias", r"\mathbb{E}\,b"),
    "squared_bias": ("mean squared bias", r"\mathbb{E}\,b^2"),
    "degrees_of_freedom": ("degrees of freedom per sample", r"\mathrm{df}_1/n"),
    "effective_ridge": ("effective ridge", r"\kappa"),
    "coefficient_norm": ("squared norm of the coefficients", r"|b|^2"),
    "smallest_eigenvalue": ("smallest non-zero eigenvalue", r"\lambda_{\min}"),
    "largest_eigenvalue": ("largest eigenvalue", r"\lambda_{\max}"),
    "atom": ("mass at zero", r"\mu(\{0\})"),
    "second_moment": ("second moment", r"\int x^2 \mathrm{d}\mu"),
    "stieltjes_transform": ("Stieltjes transform at minus the shift", r"\int \mathrm{d}\mu/(x+\lambda)"),
    "cdf": ("cumulative distribution function", r"F(x)"),
    "objective": ("minimised objective", r"\mathcal{L}"),
    "margin": ("margin", r"\kappa^*"),
    "classification_error": ("probability of a wrong label", r"P_{\mathrm{err}}"),
    "support_fraction": ("share of samples that are support vectors", r"n_{\mathrm{SV}}/n"),
    "largest_deviation": ("mean of the largest deviation of an empirical risk", r"\mathbb{E} D"),
    "largest_deviation_std": ("standard deviation of the largest deviation", r"\mathrm{sd}\,D"),
    "separable": ("whether the classes can be separated", ""),
    "train_loss": ("mean loss on the training set", r"\hat{\mathcal{L}}"),
    "overlap": ("overlap", r"m"),
    "residual": ("squared length outside the signal", r"q"),
    "mean_overlap": ("mean overlap of two tokens", r"\bar m"),
    "second_layer": ("second-layer weight", r"a"),
    "correlation": ("correlation of two neurons", r"C_o"),
    "span_alignment": ("alignment of a weight vector with the span of the means", r"\rho"),
    "hessian_alignment": (
        "alignment of a weight vector with the top k eigenvectors of its Hessian block",
        r"\rho(x,E_k(H))",
    ),
    "gradient_alignment": (
        "alignment of a weight vector with the top k eigenvectors of its gradient block",
        r"\rho(x,E_k(G))",
    ),
    "top_hessian_eigenvalue": ("largest eigenvalue of a Hessian block", r"\lambda_1(H)"),
    "top_gradient_eigenvalue": ("largest eigenvalue of a gradient block", r"\lambda_1(G)"),
}
"""Long name and LaTeX symbol of the observables that several laws share. Squared errors carry no factor 1/2."""

RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        (
            *("test_error", "risk", "excess_risk", "train_error", "bias", "variance", "squared_bias"),
            *(
                "effective_ridge",
                "coefficient_norm",
                "degrees_of_freedom",
                "smallest_eigenvalue",
                "largest_eigenvalue",
                "second_moment",
            ),
            *("stieltjes_transform", "objective", "largest_deviation", "largest_deviation_std", "residual"),
        ),
        (0.0, inf),
    ),
    **dict.fromkeys(
        (
            *("atom", "cdf", "classification_error", "support_fraction"),
            *("span_alignment", "hessian_alignment", "gradient_alignment"),
        ),
        (0.0, 1.0),
    ),
    "mean_overlap": (-1.0, 1.0),
}
"""Smallest and largest possible value of shared observables. An observable that is not in the list may be any number."""

FORMER_NAMES = {
    "noise": "weight_noise",
    "ratio": "samples_per_weight",
    "signal": "signal_energy",
    "start": "start_overlap",
    "steps": "solver_steps",
    "time": "times",
}
"""Present names of parameters, by the names that they had in earlier versions.

The error message for an old name contains the new name, if the law has the new name and not the old one.
"""
