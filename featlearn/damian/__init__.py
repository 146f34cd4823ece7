r"""Chapter 6: one gradient step finds the directions that a polynomial depends on.

Source: Damian, Lee and Soltanolkotabi (2022).

`target` holds $f^*(x) = g(U^\top x)$, a polynomial of r coordinates of a Gaussian input.
`algorithm` is Algorithm 1, which learns it. `theory` computes the gradient of its first step
without sampling noise, and how much of the step lies in the right subspace after n samples.
`experiments` has one run of each experiment.
"""

from featlearn.damian.algorithm import (
    RIDGES,
    TwoLayer,
    algorithm1,
    alignment,
    first_step,
    fit_head,
    fixed_features,
    fraction_learned,
    initialise,
    preprocess,
)
from featlearn.damian.experiments import (
    clipped_square,
    compare_methods,
    kernel_predictions,
    step_alignment,
    transfer,
)
from featlearn.damian.target import EXAMPLES, LatentPolynomial, Sample, mixture
from featlearn.damian.theory import (
    expected_alignment,
    gradient_terms,
    population_gradient,
    relu_coefficients,
)

__all__ = [
    "EXAMPLES",
    "RIDGES",
    "LatentPolynomial",
    "Sample",
    "TwoLayer",
    "algorithm1",
    "alignment",
    "clipped_square",
    "compare_methods",
    "expected_alignment",
    "first_step",
    "fit_head",
    "fixed_features",
    "fraction_learned",
    "gradient_terms",
    "initialise",
    "kernel_predictions",
    "mixture",
    "population_gradient",
    "preprocess",
    "relu_coefficients",
    "step_alignment",
    "transfer",
]
