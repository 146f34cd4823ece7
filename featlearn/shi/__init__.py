r"""Chapter 7: features that emerge from the structure of the inputs. Source: Shi, Wei and Liang
(2022).

`data` is the model of the inputs: pattern indicators $\tilde\phi\in\{0,1\}^D$, a dictionary M, and
a label that depends on how many of the k relevant patterns are present. `network` is the two-layer
network with its two gradient steps and its training. `theory` holds Lemmas 4, 5 and 6 and the
parities of Theorem 3.
"""

from featlearn.shi.data import Patterns, Sample, odd, structured_counts, uniform_counts
from featlearn.shi.network import (
    ACTIVATIONS,
    Net,
    Tangent,
    accuracy,
    activation,
    cosines,
    gradient,
    initialise,
    random_net,
    slope,
    train_all,
    train_head,
    train_tangent,
    two_steps,
)
from featlearn.shi.theory import (
    Components,
    components,
    good_network,
    krawtchouk,
    step_bounds,
    walsh,
)

__all__ = [
    "ACTIVATIONS",
    "Components",
    "Net",
    "Patterns",
    "Sample",
    "Tangent",
    "accuracy",
    "activation",
    "components",
    "cosines",
    "good_network",
    "gradient",
    "initialise",
    "krawtchouk",
    "odd",
    "random_net",
    "slope",
    "step_bounds",
    "structured_counts",
    "train_all",
    "train_head",
    "train_tangent",
    "two_steps",
    "uniform_counts",
    "walsh",
]
