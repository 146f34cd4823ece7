"""featlearn: executable lecture notes on why neural networks beat kernels.

``import featlearn as fl`` gives the science: kernels (``fl.Gaussian``, ``fl.NTK``), estimators
(``fl.KernelRegression``), random streams (``fl.stream``). Each chapter has a module of its own,
such as ``fl.ntk``; what notebooks need for figures and claims is in ``featlearn.notebook``.
"""

from featlearn import (
    activations,
    beyond,
    damian,
    gp,
    harmonics,
    hermite,
    kernels,
    linalg,
    networks,
    ntk,
    online,
    random_features,
    rfm,
    shi,
    wide,
)
from featlearn.gp import GaussianProcess
from featlearn.kernels import Gaussian, KernelRegression, Laplace, Matern, Polynomial
from featlearn.networks import Network
from featlearn.ntk import NTK, empirical_ntk
from featlearn.random_features import ArcCosine, RandomFeatures
from featlearn.rfm import RecursiveFeatureMachine
from featlearn.seeding import stream
from featlearn.wide import NNGP

__all__ = [
    "NNGP",
    "NTK",
    "ArcCosine",
    "Gaussian",
    "GaussianProcess",
    "KernelRegression",
    "Laplace",
    "Matern",
    "Network",
    "Polynomial",
    "RandomFeatures",
    "RecursiveFeatureMachine",
    "activations",
    "beyond",
    "damian",
    "empirical_ntk",
    "gp",
    "harmonics",
    "hermite",
    "kernels",
    "linalg",
    "networks",
    "ntk",
    "online",
    "random_features",
    "rfm",
    "shi",
    "stream",
    "wide",
]
__version__ = "1.0.0"


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
