"""Every public name of the package meets bad arguments, one at a time.

Modules, functions, classes and methods are found by introspection. Each has a good call, put
together from `EXAMPLES` (by parameter) and `CALLS` (by function); a public name without one fails.
Then each argument in turn is replaced by bad ones of its kind. A call must give a clear error,
one that names the argument, or a right answer: finite, and of the type of the good call's. It has
2 seconds of processor time and 1 GB.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import math
import pkgutil
import re
import resource
import signal
import warnings
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import featlearn
from featlearn import activations, damian, kernels, networks, shi
from featlearn.damian.target import LatentPolynomial
from featlearn.damian.target import Sample as WeightedSample
from featlearn.notebook import claims
from featlearn.shi.data import Patterns

mpl.use("Agg")
SECONDS, GIGABYTE = 2.0, 2**30
CLEAR = (ValueError, TypeError, MemoryError)  # NotFittedError is a ValueError
RNG = np.random.default_rng

NOT_A_DOOR = {  # module, class or function: why it is not called with bad arguments
    "validate": "the checks themselves",
    "recursion": "the core of NNGP and NTK, which check for it",
    "fused": "called by operators and regression, which check for it",
    "notebook.tables": "makes HTML of results that the package stores",
    "estimators": "what estimators inherit",
    "kernels.differentiated": "takes anything",
    "kernels.no_overflow": "a check itself",
    "kernels.KernelFunction": "abstract",
    "random_features.scaled_cosine": "an activation, for FeatureMap",
    "random_features.scaled_relu": "an activation, for FeatureMap",
    "notebook.at_scale": "takes and returns anything",
    "wide.WideKernel": "abstract",
    "data.Digits": "a result: what `mnist` returns",
    "linalg.Solution": "a result: what iterative solvers return",
    "sweep.Sweep": "a result: what `run` returns",
    "shi.data.Sample": "a result: what `Patterns.sample` returns",
    "shi.theory.Components": "a result: what `components` returns",
    "notebook.records.Claim": "a result: what every claim returns",
    "notebook.claims.ClaimFailed": "an exception",
}
TRUSTED = {"matrix": "KernelFunction.__call__ checks for it"}
INFINITE = {  # where infinity or NaN is an answer that the docstring promises
    "online.escape_times": "infinite where the level is not reached",
    "notebook.fits.crossing": "NaN where a curve does not cross",
}

OWN_WORDS = {  # clear errors that name something else than the argument
    "activation 'tanh' needs a closed form": "names the activation and the variance",
}
ALSO_GOOD = {  # (function, parameter, value): why it is no bad value here
    ("notebook.glue", "value", "a string"): "words are glued too",
    ("notebook.claims.prediction", "measured", "a number"): "one run",
    ("notebook.claims.identity", "gap", "a number"): "one run",
    ("sweep.run", "experiment", "a function that returns NaN"): "an experiment without an answer",
}
PASSED_ON = {  # (function, parameter): why NaN or infinity may go in and come out
    ("beyond.SignedNetwork.", "V"): "a member that diverged is NaN, the others count",
    (
        "activations.Activation.",
        "z",
    ): "acts entry by entry, also in a network that diverges",
    ("networks.Network.", "X"): "called in every step of a training, which checks X once",
    ("notebook.claims.not_shown", "measured"): "an open claim has no verdict",
    ("notebook.fits.crossing", "y"): "nobody knows where a curve with a NaN crosses",
    ("notebook.plot.", "x"): "NaN leaves a gap in a curve",
    ("notebook.plot.", "y"): "NaN leaves a gap in a curve",
}


def X():
    return RNG(0).standard_normal((6, 3))


def y():
    return RNG(1).standard_normal(6)


def signs():
    return np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])


def K():
    return X() @ X().T + 6 * np.eye(6)


def network():
    return networks.Network((3, 4, 1), "tanh", 1.2, 0.3)


def theta():
    return network().initialise(RNG(2))


def target():
    return LatentPolynomial.draw(3, {(2, 0): 0.6, (1, 2): 0.8}, RNG(3))


def weighted():
    return WeightedSample(X(), y(), np.full(6, 1 / 6))


def patterns():
    return Patterns((0, 1), (1,), 5)


def net():
    return shi.Net(RNG(4).standard_normal((4, 3)), np.ones(4), np.array([1.0, -1.0, 2.0, -2.0]))


@functools.cache
def ax():
    return mpl.figure.Figure().subplots()


def square(z):
    return z * z


def ones(z):
    return np.ones_like(z)


def two_layer():
    parts = np.ones((4, 3)), np.ones(4), np.ones(4), 0.1, np.zeros(3)
    return damian.TwoLayer(*map(torch.as_tensor, parts), 0.1)


def ensemble():
    return RNG(5).standard_normal((2, 6, 3)), RNG(6).standard_normal((2, 6))


def trained():
    X, y = ensemble()
    return networks.TwoLayerEnsemble(4, steps=2, random_state=0).fit(X, y)


EXAMPLES = {  # by the name of the parameter
    "A": lambda: lambda v: 2 * v,
    "C": lambda: np.eye(3),
    "D": lambda: 5,
    "G": X,
    "K": K,
    "M": lambda: np.eye(3),
    "P": lambda: (1,),
    "Phi": X,
    "S": lambda: np.ones((4, 2)),
    "U": lambda: np.eye(3)[:, :2],
    "V": lambda: np.zeros((4, 3)),
    "W": lambda: RNG(4).standard_normal((4, 3)),
    "X": X,
    "X_new": lambda: X()[:2],
    "Y": lambda: X()[:2],
    "Z": lambda: np.ones((4, 2)),
    "a": lambda: np.array([1.0, -1.0, 1.0, -1.0]),
    "activation": lambda: torch.tanh,
    "at_least": lambda: 0.5,
    "at_most": lambda: 2.0,
    "ax": ax,
    "b": lambda: np.ones(4),
    "bandwidth": lambda: 2.0,
    "batch": lambda: 3,
    "block": lambda: 4,
    "callback": lambda: lambda *seen: None,
    "centres": lambda: X()[:2],
    "change": net,
    "client": lambda: None,
    "coefficients": lambda: np.ones(2),
    "columns": lambda: 2,
    "component": y,
    "counts": lambda: np.array([0.25, 0.5, 0.25]),
    "d": lambda: 3,
    "degree": lambda: 2,
    "degrees": lambda: [0, 1, 2],
    "delta": lambda: 0.4,
    "describe": lambda: "counting",
    "device": lambda: "cpu",
    "dtype": lambda: torch.float64,
    "eigenvalues": lambda: np.array([1.0, 0.1]),
    "energies": lambda: [0.5, 0.3, 0.2],
    "experiment": lambda: lambda rng, n: rng.standard_normal() + n,
    "file": lambda: None,
    "first": lambda: 3,
    "fmt": lambda: ".2f",
    "function": lambda: torch.tanh,
    "g": lambda: square,
    "h": lambda: np.exp,
    "id": lambda: "ker-flow",
    "initial": lambda: kernels.Gaussian(2.0),
    "interval": lambda: (0.4, 0.6),
    "items": lambda: range(3),
    "k": lambda: 2,
    "kernel": lambda: kernels.Gaussian(1.5),
    "kinks": lambda: [0.0],
    "label": lambda: "a label",
    "larger": lambda: np.array([3.0, 4.0]),
    "layer": lambda: 1,
    "learning_rate": lambda: 0.05,
    "limit": lambda: 20,
    "m": lambda: np.array([0.1, 0.2]),
    "measured": lambda: np.array([1.0, 1.1]),
    "members": lambda: 2,
    "model": patterns,
    "multiplicities": lambda: np.array([1.0, 5.0]),
    "n": lambda: 6,
    "n_features": lambda: 8,
    "name": lambda: "name",
    "net": net,
    "network": network,
    "noise_std": lambda: 0.1,
    "notebook": dict,
    "outputs": y,
    "p": lambda: 3,
    "pairs": lambda: 2,
    "phi": lambda: np.array([[0.0, 1, 1, 0, 1], [1, 0, 0, 0, 1]]),
    "pivots": lambda: np.array([0, 2]),
    "points": lambda: 16,
    "predicted": lambda: 1.0,
    "predictions": y,
    "preconditioner": lambda: lambda v: v,
    "q": lambda: np.array([0.5, 1.0]),
    "q_x": lambda: np.array([0.5, 1.0]),
    "q_xy": lambda: np.array([0.1, -0.2]),
    "q_y": lambda: np.array([1.0, 2.0]),
    "r": lambda: 2,
    "random_state": lambda: 0,
    "rank": lambda: 2,
    "rank_tolerance": lambda: 1e-9,
    "rate": lambda: square,
    "reason": lambda: "too large",
    "record": lambda: [0, 2],
    "ridge": lambda: 0.1,
    "ridges": lambda: [0.1, 1.0],
    "rng": lambda: RNG(7),
    "rounds": lambda: 1,
    "rows": lambda: 1,
    "says": lambda: "it holds",
    "scale": lambda: 1.0,
    "second": lambda: shi.Sample(*(torch.as_tensor(part) for part in (X(), signs()))),
    "seeds": lambda: 2,
    "settings": lambda: {"n": [1, 2]},
    "sigma_a": lambda: 1.0,
    "sigma_b": lambda: 0.3,
    "sigma_w": lambda: 1.2,
    "signs": lambda: np.ones(4),
    "size": lambda: 3,
    "sizes": lambda: [4, 8],
    "slope": lambda: ones,
    "smaller": lambda: np.array([1.0, 2.0]),
    "source": lambda: "S1",
    "start": lambda: 0.1,
    "steps": lambda: 3,
    "t": lambda: 0.5,
    "target": target,
    "terms": lambda: {(2,): 0.6, (3,): 0.8},
    "test": weighted,
    "theta": theta,
    "theta0": theta,
    "title": lambda: "a title",
    "tol": lambda: 0.5,
    "total": lambda: 3,
    "v": y,
    "validation": weighted,
    "value": lambda: 0.5,
    "values": lambda: np.array([1.0, 2.0, 3.0]),
    "weight_decay": lambda: 0.1,
    "width": lambda: 4,
    "widths": lambda: (3, 4, 1),
    "workers": lambda: 1,
    "x": lambda: np.array([1.0, 2.0, 4.0]),
    "y": y,
    "z": lambda: np.array([-1.0, 0.5]),
}
SEEDS_BY_X = lambda: np.array([[1.0, 2.0, 4.0], [1.1, 2.2, 3.9], [0.9, 2.1, 4.2]])  # noqa: E731
PAIR = lambda: shi.Sample(*(torch.as_tensor(part) for part in (X(), signs())))  # noqa: E731
CALLS = {  # by the name of the function: what differs from EXAMPLES
    "activations.Activation": {
        "name": lambda: "tanh",
        "closed_form": None,
        "closed_derivative": None,
    },
    "activations.get": {"activation": lambda: torch.sigmoid},
    "beyond.SignedNetwork.__call__": {"X": X},
    "beyond.SignedNetwork.train": {"options": {"learning_rate": 0.05, "steps": 2}},
    "damian.algorithm.TwoLayer": {
        "alpha": lambda: 0.1,
        "beta": lambda: np.zeros(3),
        "ridge": lambda: 0.1,
    },
    "damian.algorithm.algorithm1": {"width": lambda: 4},
    "damian.algorithm.fixed_features": {"width": lambda: 4},
    "damian.algorithm.fit_head": {"network": lambda: two_layer()},
    "damian.experiments.compare_methods": {"d": lambda: 4, "n": lambda: 40, "points": lambda: 32},
    "damian.experiments.step_alignment": {
        "label": lambda: damian.clipped_square,
        "width": lambda: 8,
    },
    "damian.experiments.transfer": {"width": lambda: 8},
    "damian.target.Sample": {"weights": lambda: np.full(6, 1 / 6)},
    "damian.target.Sample.mean": {"values": y},
    "damian.target.LatentPolynomial": {"terms": lambda: {(2, 0): 0.6, (1, 2): 0.8}},
    "damian.theory.expected_alignment": {"n": lambda: np.array([10, 20])},
    "damian.theory.population_gradient": {
        "target": lambda: LatentPolynomial.draw(5, {(2, 0): 0.6, (1, 2): 0.8}, RNG(3)),
        "W": lambda: RNG(4).standard_normal((4, 5)),
    },
    "data.load": {"name": lambda: "solvers"},
    "harmonics.gegenbauer": {"t": lambda: np.array([0.0, 0.5])},
    "harmonics.ridge_energies": {"g": lambda: abs},
    "harmonics.learnability": {"n": lambda: 6.0},
    "kernels.KernelRegression": {"dtype": lambda: torch.float64},
    "linalg.SpectralPath.descent": {
        "steps": lambda: np.array([0, 3]),
        "learning_rate": lambda: 0.05,
    },
    "linalg.nystrom_preconditioner": {"columns": lambda: K()[:, [0, 2]]},
    "linalg.richardson": {"learning_rate": lambda: 0.4},
    "networks.TwoLayerEnsemble": {"width": lambda: 4, "steps": lambda: 2},
    "networks.TwoLayerEnsemble.fit": {"X": lambda: ensemble()[0], "y": lambda: ensemble()[1]},
    "networks.TwoLayerEnsemble.predict": {"X": lambda: ensemble()[0]},
    "notation.convert_learning_rate": {"source": lambda: "sum", "target": lambda: "mean"},
    "notation.convert_ridge": {"source": lambda: "sum", "target": lambda: "mean"},
    "notation.hermite_coefficients": {"source": lambda: "h", "target": lambda: "He"},
    "notation.standard_learning_rates": {},
    "notation.to_signs": {},
    "notation.unscaled_features": {"theta": y},
    "notebook.fits.PowerLaw": {"exponent": lambda: 0.5, "prefactor": lambda: 1.0},
    "notebook.fits.crossing": {"y": lambda: SEEDS_BY_X()[:, ::-1], "level": lambda: 2.5},
    "notebook.fits.fit_power_law": {"y": SEEDS_BY_X, "resamples": lambda: 100},
    "notebook.claims.prediction": {
        "measured": lambda: [1.0, 1.1],
        "predicted": lambda: 1.0,
        "tol": lambda: 0.2,
        "rival": lambda: ("twice as much", 2.0),
        "at_most": None,
        "at_least": None,
    },
    "notebook.claims.comparison": {
        "smaller": lambda: [1.0, 1.1, 0.9, 1.0],
        "larger": lambda: [3.0, 3.1, 3.3, 2.9],
        "rival": lambda: "no difference",
    },
    "notebook.claims.identity": {"gap": lambda: [0.0, 1e-12]},
    "notebook.claims.not_shown": {"predicted": lambda: "a slope"},
    "notebook.records.read": {"notebook": lambda: {"cells": []}},
    "single_index.link": {"name": lambda: "|z|"},
    "single_index.draw": {"g": lambda: np.abs, "runs": lambda: 2},
    "single_index.kernel_errors": {
        "X": lambda: ensemble()[0],
        "y": lambda: ensemble()[1],
        "X_test": lambda: ensemble()[0],
        "y_test": lambda: ensemble()[1],
    },
    "single_index.train": {
        "X": lambda: ensemble()[0],
        "y": lambda: ensemble()[1],
        "options": {"width": 4, "steps": 2},
    },
    "single_index.network_errors": {
        "net": trained,
        "X_test": lambda: ensemble()[0],
        "y_test": lambda: ensemble()[1],
    },
    "single_index.alignment": {"net": trained, "U": lambda: RNG(8).standard_normal((2, 3))},
    "notebook.maps.neuron_map": {"W": X, "signs": signs, "star": lambda: np.ones(3)},
    "notebook.plot.label": {"x": lambda: "x", "y": lambda: "y"},
    "notebook.plot.measured": {"y": SEEDS_BY_X},
    "notebook.plot.panels": {"options": None},
    "notebook.plot.power_law": {"y": SEEDS_BY_X},
    "notebook.plot.theory": {"y": lambda: np.array([1.0, 2.0, 4.0])},
    "ntk.empirical_ntk": {"model": network},
    "online.escape_times": {"d": lambda: np.array([5, 6]), "limit": lambda: np.array([9, 20])},
    "random_features.FeatureMap": {"activation": lambda: torch.cos},
    "random_features.RandomFeatures.fit": {"y": None},
    "random_features.train": {"theta": lambda: np.zeros((2, 3))},
    "rfm.RecursiveFeatureMachine": {"ridge": lambda: 1e-3},
    "scikit.GaussianProcessKernel.__call__": {"Y": None},
    "shi.data.Patterns": {"A": lambda: (0, 1), "M": lambda: np.eye(5)},
    "shi.network.Tangent.__call__": {},
    "shi.network.two_steps": {"first": PAIR, "second": PAIR},
    "shi.theory.components": {"W": lambda: RNG(4).standard_normal((4, 5))},
    "shi.theory.krawtchouk": {"D": lambda: 5},
    "shi.theory.step_bounds": {"W": lambda: RNG(4).standard_normal((4, 5))},
    "shi.theory.walsh": {"values": lambda: np.array([[1.0, -1.0, 1.0, 1.0]])},
    "shi.network.cosines": {"v": lambda: np.ones(3)},
    "sweep.run": {"show_progress": lambda: False},
    "wide.linearise": {},
}
for shi_name in ("accuracy", "gradient", "train_all", "train_head", "train_tangent"):
    CALLS.setdefault(f"shi.network.{shi_name}", {})["y"] = signs
SELF = {  # how the object of a method is made; otherwise by the class's own good call
    "gp.GaussianProcess": lambda new: new.fit(X(), y()),
    "networks.Network": lambda new: network(),
    "kernels.KernelRegression": lambda new: new.fit(X(), y()),
    "networks.TwoLayerEnsemble": lambda new: new.fit(*ensemble()),
    "random_features.RandomFeatures": lambda new: new.fit(X()),
    "rfm.RecursiveFeatureMachine": lambda new: new.fit(X(), y()),
}
USE = {  # what is done with a new object: parameters of estimators are checked in `fit`
    **SELF,
    "kernels.Gaussian": lambda new: new(X()),
    "kernels.Matern": lambda new: new(X()),
    "kernels.Polynomial": lambda new: new(X()),
    "kernels.Laplace": lambda new: new(X()),
    "ntk.NTK": lambda new: new(X()),
    "wide.NNGP": lambda new: new(X()),
    "networks.Network": lambda new: new(new.initialise(RNG(0)), X()),
    "networks.descent": list,
    "beyond.SignedNetwork.descent": list,
    "progress.progress": list,
    "wide.linearise": lambda new: new(theta(), X()),
    "random_features.FeatureMap": lambda new: new(X()),
    "kernels.KernelOperator": lambda new: new(y()),
    "scikit.GaussianProcessKernel": lambda new: new(X()),
    "activations.Activation": lambda new: new.dual(
        *(EXAMPLES[q]() for q in ("q_x", "q_xy", "q_y"))
    ),
}


# What there is to call


def short(module):
    return module.__name__.removeprefix("featlearn.")


def doors():
    """The public callables: name → the function, and for a method its class."""
    found = {}
    for info in pkgutil.walk_packages(featlearn.__path__, "featlearn."):
        if info.name.startswith("featlearn.checks"):
            continue
        module = importlib.import_module(info.name)
        if short(module) in NOT_A_DOOR:
            continue
        for name, thing in vars(module).items():
            key = f"{short(module)}.{name}"
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            if key in NOT_A_DOOR or not (inspect.isfunction(thing) or inspect.isclass(thing)):
                continue
            found[key] = (thing, None)
            if inspect.isclass(thing):
                found.update(methods(key, thing))
    return found


def methods(key, owner):
    found = {}
    for name in dir(owner):
        here = next((c for c in owner.__mro__ if name in vars(c)), object)
        if not here.__module__.startswith("featlearn") or name in TRUSTED:
            continue
        plain = vars(here)[name]
        if name != "__call__" and (name.startswith("_") or isinstance(plain, property)):
            continue
        if inspect.isfunction(plain) or isinstance(plain, classmethod):
            found[f"{key}.{name}"] = (getattr(owner, name), owner)
    return found


DOORS = doors()
MODULES = sorted({key.rsplit(".", 2 if owner else 1)[0] for key, (_, owner) in DOORS.items()})


def maker(key, parameter):
    """The function that makes a good value of this parameter, or None if there is none."""
    own = CALLS.get(key, {})
    if parameter.name in own:
        return own[parameter.name]
    if parameter.default not in (inspect.Parameter.empty, None):
        return lambda: parameter.default
    return EXAMPLES.get(parameter.name)


def signature(key):
    thing, owner = DOORS[key]
    parameters = list(inspect.signature(thing).parameters.values())
    bound_already = owner is None or inspect.ismethod(thing)
    return parameters if bound_already else parameters[1:]


def good_arguments(key):
    arguments = {}
    for parameter in signature(key):
        make = maker(key, parameter)
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= CALLS.get(key, {}).get(parameter.name) or {}
        elif make is not None:
            arguments[parameter.name] = make()
        elif parameter.default is parameter.empty:
            raise AssertionError(f"{key} needs an example of {parameter.name}: add it to CALLS")
    return arguments


def call(key, arguments, limited=True):
    thing, owner = DOORS[key]
    before = ()
    if owner is not None and not inspect.ismethod(thing):
        class_key = key.rsplit(".", 1)[0]
        before = (SELF.get(class_key, lambda new: new)(owner(**good_arguments(class_key))),)
    with limits() if limited else contextlib.nullcontext():
        result = thing(*before, **arguments)
        return USE[key](result) if key in USE else result


@contextlib.contextmanager
def limits():
    """2 seconds of processor time, 1 GB more than there is now, no warnings, no figures."""

    def stop(*_):
        raise TimeoutError(f"took longer than {SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + GIGABYTE, hard))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        plt.close("all")


# Bad values: (what it is, the value, whether a right answer is possible)

NOTHING, MANY = "nothing", 10**10


def bad_values(parameter, good):
    if parameter.name == "callback":  # what it returns is of no interest
        yield from [("a number", 3, False), ("a string", "§", False)]
        return
    if parameter.name == "items":  # any iterable
        yield from [("a number", 3, False), ("None", None, False), ("an object", object(), False)]
        return
    yield from [("an object", object(), False), ("a dictionary", {"a": 1}, False)][
        : 1 + (not isinstance(good, Mapping))
    ]
    if parameter.default is not None and "None" not in str(parameter.annotation):
        yield "None", None, False
    if isinstance(good, (bool, np.bool_)):
        yield from [("a string", "yes", False), ("2", 2, False)]
    elif isinstance(good, (int, np.integer)):
        yield from bad_integers()
    elif isinstance(good, float):
        yield from bad_reals()
    elif isinstance(good, (np.ndarray, torch.Tensor)):
        yield from bad_arrays(np.asarray(good))
    elif isinstance(good, str):
        yield from [("a number", 3, False), ("an empty string", "", True), ("nonsense", "§", True)]
    elif isinstance(good, np.random.Generator):
        yield from [("a string", "0", False), ("half", 0.5, False), ("-1", -1, False)]
    elif isinstance(good, torch.dtype):
        yield from [("float16", torch.float16, False), ("int64", torch.int64, False)]
        yield "a string", "§", False
    elif isinstance(good, Mapping):
        yield from bad_mappings(good)
    elif isinstance(good, (list, tuple, range)):
        yield from bad_sequences(list(good))
    elif isinstance(good, kernels.KernelFunction) or (
        callable(good) and not dataclasses.is_dataclass(good)
    ):
        yield from bad_functions()
    else:
        yield from [("a number", 3, False), ("a string", "§", False)]
        yield "an array", np.ones(3), False


def bad_integers():
    yield from [("a string", "3", False), ("NaN", math.nan, False), ("infinity", math.inf, False)]
    yield from [("half", 0.5, False), ("a complex number", 1j, False), ("a list", [2, 3], False)]
    yield from [("-1", -1, True), ("-10¹⁰", -MANY, True), ("0", 0, True)]
    yield from [("10¹⁰", MANY, True), ("10³⁰⁰", 10**300, True)]


def bad_reals():
    yield from [("a string", "0.1", False), ("NaN", math.nan, False), ("infinity", math.inf, True)]
    yield from [("a complex number", 1j, False), ("-infinity", -math.inf, False)]
    yield from [("-1", -1.0, True), ("0", 0.0, True)]
    yield from [("1e300", 1e300, True), ("1e-300", 1e-300, True)]
    yield "a NaN tensor", torch.tensor(math.nan), False


def bad_arrays(good):
    values = good.astype(float)
    yield from [("a string", "abc", False), ("a function", square, False)]
    for name, number in (("NaN", math.nan), ("infinity", math.inf)):
        bad = values.copy()
        bad.flat[0] = number
        yield f"an array with {name}", bad, False
    yield "an empty array", np.empty((0, *values.shape[1:])), True
    yield "no columns", values[..., :0], True
    yield "a complex array", values + 1j, False
    yield "an array of objects", np.full(values.shape, object()), False
    yield "an array of strings", np.full(values.shape, "a"), False
    yield "a ragged list", [[1.0], [1.0, 2.0]], False
    dense = torch.as_tensor(values)
    yield "a sparse tensor", dense.to_sparse(), False
    yield "a tensor without values", dense.to("meta"), False
    yield "a half tensor", dense.half(), True
    yield "a bfloat16 tensor", dense.bfloat16(), True
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[0] = True
    yield "a masked array", np.ma.array(values, mask=mask), False
    yield "one axis more", values[None, None], True
    yield "one row more", np.concatenate([values, values[:1]]) if values.ndim else values, True
    if values.ndim > 1:
        yield "one column more", np.concatenate([values, values[..., :1]], axis=-1), True
        yield "one axis less", values[0], True
        yield "one row", values[:1], True
    yield "zeros", 0 * values, True
    yield "large entries", 1e200 * (1 + np.abs(values)), True
    yield "small entries", 1e-200 * values, True
    yield "negative entries", -1 - np.abs(values), True


def bad_functions():
    yield from [("a number", 3, False), ("a string", "§", False)]
    yield "a function that returns None", (lambda *a, **k: None), False
    yield "a function that returns a string", (lambda *a, **k: "§"), False
    yield "a function that returns NaN", (lambda *a, **k: math.nan), False
    yield "a function that returns a number", (lambda *a, **k: 0.25), True
    yield "a function that returns three numbers", (lambda *a, **k: np.ones(3)), True


def bad_mappings(good):
    holds_tensors = any(isinstance(value, torch.Tensor) for value in good.values())
    yield from [("a number", 3, False), ("a string", "§", False)]
    yield "an empty dictionary", {}, not holds_tensors
    for name in good:
        yield f"{name!r} is None", {**good, name: None}, False
        yield f"{name!r} is a string", {**good, name: "§"}, False
        yield f"{name!r} is a sparse tensor", {**good, name: torch.ones(2).to_sparse()}, False
        rest = {key: value for key, value in good.items() if key != name}
        yield f"no {name!r}", rest, not holds_tensors
        if holds_tensors:
            long = torch.ones(7, dtype=good[name].dtype)
            yield f"{name!r} is too long", {**good, name: long}, False


def bad_sequences(good):
    yield from [("a number", 3, False), ("a string", "§", False), ("an empty list", [], True)]
    for what, value in (("None", None), ("a string", "§"), ("NaN", math.nan), ("i", 1j)):
        yield f"{what} in it", [*good, value], False
    for what, value in (("-1", -1), ("10¹⁰", MANY), ("a half", 0.5), ("infinity", math.inf)):
        yield f"{what} in it", [*good[:-1], value], True
    yield "one more", [*good, 7], True
    yield "twice", [*good, *good], True


# What counts as an answer


def names(key):
    own = [parameter.name for parameter in signature(key)]
    owner = key.rsplit(".", 1)[0]
    used = ["X", "y", "v"] if key in USE else []
    return own + used + ([p.name for p in signature(owner)] if owner in DOORS else [])


def is_clear(error, accepted):
    """NAME must …, or … NAME=…, for one of the names."""
    text = str(error)
    if any(text.startswith(start) for start in OWN_WORDS):
        return True
    head = text.split(" must ")[0] if " must " in text else ""
    return isinstance(error, CLEAR) and any(
        re.search(rf"(?<!\w){name}(?!\w)", head)
        or f"{name}=" in text
        or re.match(rf"(Input )?{name} (contains|has) ", text)  # scikit-learn's own words
        for name in accepted
    )


def finite(value, infinity=False):
    """Whether all numbers in a result are finite; with `infinity`, whether none is NaN."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy() if value.is_floating_point() else 0
    if isinstance(value, np.ndarray) and value.dtype.kind not in "fc":
        return True
    if isinstance(value, (float, np.floating, np.ndarray)):
        return not np.isnan(value).any() if infinity else bool(np.isfinite(value).all())
    if isinstance(value, Mapping):
        return all(finite(part, infinity) for part in value.values())
    if isinstance(value, (list, tuple)):
        return all(finite(part, infinity) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, activations.Activation):
        return finite(vars(value), infinity)
    return True


def kind(value):
    """The type of a result, with the types of its parts."""
    return (tuple, tuple(map(kind, value))) if isinstance(value, tuple) else type(value)


def failures(key):
    """The bad calls with neither a clear error nor a right answer, and how many there were."""
    good = good_arguments(key)
    answer = call(key, good, limited=False)  # the first use of a library may load it
    assert key in INFINITE or finite(answer), f"{key}: the good call is not finite"
    count, found = 0, []
    for parameter in signature(key):
        make = maker(key, parameter)
        if make is None or parameter.kind is parameter.VAR_KEYWORD or make() is None:
            continue
        for what, bad, may_succeed in bad_values(parameter, make()):
            if (key, parameter.name, what) in ALSO_GOOD:
                continue
            count += 1
            complaint = judge(
                key, parameter.name, bad, may_succeed, answer, what in ("large entries", "1e300")
            )
            if complaint and not is_passed_on(key, parameter.name, what):
                found.append(f"{key}({parameter.name} = {what}): {complaint}")
    return found, count


def is_passed_on(key, name, what):
    doors = [key.startswith(start) and name == own for start, own in PASSED_ON]
    return any(doors) and what in ("an array with NaN", "an array with infinity")


def judge(key, name, bad, may_succeed, answer, may_overflow=False):
    try:
        result = call(key, {**good_arguments(key), name: bad})
    except claims.ClaimFailed:  # an answer: the claim does not hold
        return None
    except Exception as error:
        if is_clear(error, names(key) if may_succeed else [name]):
            return None
        return f"{type(error).__name__}: {str(error)[:150]!r}"
    if isinstance(result, claims.Claim) and result.verdict == "fails":
        return None
    if not may_succeed:
        return f"accepted, gave {str(result)[:80]!r}"
    if kind(result) != kind(answer):
        return f"returned {kind(result)}, not {kind(answer)}"
    if key not in INFINITE and not finite(result, may_overflow):
        return "returned NaN" if may_overflow else "returned NaN or infinity"
    return None


@pytest.mark.parametrize("module", MODULES)
def test_bad_calls_get_a_clear_error_or_a_right_answer(module):
    keys = [k for k, (_, owner) in DOORS.items() if k.rsplit(".", 2 if owner else 1)[0] == module]
    found = [complaint for key in keys for complaint in failures(key)[0]]
    assert not found, "\n".join(found)


def test_there_are_many_and_no_exception_is_stale():
    """Over 3,000 calls; every function that an exception names exists."""
    count = 0
    for key in DOORS:
        for parameter in signature(key):
            make = maker(key, parameter)
            if make is not None and parameter.kind is not parameter.VAR_KEYWORD:
                count += len(list(bad_values(parameter, make())))
    assert count > 3000
    modules = {info.name for info in pkgutil.walk_packages(featlearn.__path__, "featlearn.")}
    for name in (*NOT_A_DOOR, *CALLS, *SELF, *USE, *INFINITE, *(key for key, *_ in ALSO_GOOD)):
        module, _, thing = name.rpartition(".")
        assert (
            f"featlearn.{name}" in modules
            or name in DOORS
            or hasattr(importlib.import_module(f"featlearn.{module}"), thing)
        ), name
    for start, name in PASSED_ON:
        assert any(key.startswith(start) and name in names(key) for key in DOORS), (start, name)
    assert set(EXAMPLES) <= {name for key in DOORS for name in names(key)}


def test_the_judge_is_strict():
    """What is accepted, obscure, infinite, too slow or too large is found."""

    def answers(function, bad=3, may_succeed=False):
        DOORS["judge"] = (function, None)
        try:
            return judge("judge", "n", bad, may_succeed, 1.0)
        finally:
            del DOORS["judge"]

    def refuse(n):
        raise ValueError(f"n must be small, got {n}")

    def obscure(n):
        raise ValueError("something is wrong")

    def other(n):
        raise KeyError("n must be small")

    def slow(n):
        while True:
            n = n + 1

    assert answers(refuse) is None
    assert answers(refuse, may_succeed=True) is None
    assert "accepted" in answers(lambda n: 1.0)
    assert answers(lambda n: 2.0, may_succeed=True) is None
    assert "returned NaN" in answers(lambda n: math.nan, may_succeed=True)
    assert "returned" in answers(lambda n: "text", may_succeed=True)
    assert "something is wrong" in answers(obscure)
    assert "KeyError" in answers(other)
    assert "TimeoutError" in answers(slow, may_succeed=True)
    assert "allocate" in answers(lambda n: float(np.ones(10**9)[0]), may_succeed=True)
