r"""The cases of the comparison between devices: what enters them, and what they compute.

Random numbers are drawn on the CPU and then moved, so both devices see the same. They are rounded
to float32 first, so both types do too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import (
    activations,
    beyond,
    damian,
    gp,
    hermite,
    kernels,
    linalg,
    networks,
    ntk,
    random_features,
    rfm,
    seeding,
    shi,
    wide,
)

SINGLE, DOUBLE = torch.float32, torch.float64
DIM = 6


class Numbers(np.random.Generator):
    r"""A stream whose real numbers are rounded to float32 and, where a draw of $\xi$ is asked for,
    multiplied by $1+\varepsilon\xi$.
    """

    def __init__(self, name: str, eps: float, draw: int) -> None:
        super().__init__(seeding.stream(name).bit_generator)
        self.eps, self.xi = eps, seeding.stream(f"{name}/rounding/{draw}") if draw else None

    def rounded(self, values: Any) -> np.ndarray:
        """The values as they enter a case."""
        values = np.asarray(values, np.float32).astype(np.float64)[()]
        return (
            values
            if self.xi is None
            else values * (1 + self.eps * self.xi.standard_normal(values.shape))
        )

    def standard_normal(self, *args: Any, **options: Any) -> np.ndarray:
        """As in numpy."""
        return self.rounded(super().standard_normal(*args, **options))

    def uniform(self, *args: Any, **options: Any) -> np.ndarray:
        """As in numpy."""
        return self.rounded(super().uniform(*args, **options))


@dataclass(frozen=True)
class Setting:
    """Where a case runs, in what type, and which draw perturbs its inputs; 0 is none."""

    device: str
    dtype: torch.dtype
    draw: int = 0

    @property
    def eps(self) -> float:
        """The rounding of the type."""
        return torch.finfo(self.dtype).eps

    def rng(self, name: str) -> Numbers:
        """The stream of this name."""
        return Numbers(f"agreement/{name}", self.eps, self.draw)

    def normal(self, name: str, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return self.move(self.rng(name).standard_normal(shape))

    def move(self, values: np.ndarray) -> Tensor:
        """An array in this type, on this device."""
        return torch.as_tensor(values).to(self.device, self.dtype)

    def rounded(self, name: str, values: Tensor, symmetric: bool = False) -> Tensor:
        """Computed inputs as they enter a case, in this type, on this device."""
        rounded = self.rng(name).rounded(values.double().cpu().numpy())
        return self.move((rounded + rounded.T) / 2 if symmetric else rounded)


@dataclass(frozen=True)
class Case:
    """What is compared: a tensor, an array or a number, as a function of the setting."""

    group: str
    name: str
    run: Callable[[Setting], Any]
    dtypes: tuple[torch.dtype, ...] = (SINGLE, DOUBLE)


def flat(*parts: Tensor) -> Tensor:
    """All entries in one vector."""
    return torch.cat([part.flatten() for part in parts])


def points(at: Setting, n: int = 24) -> Tensor:
    """n Gaussian points."""
    return at.normal(f"points/{n}", n, DIM)


def labels(at: Setting, n: int = 24) -> Tensor:
    """n Gaussian labels."""
    return at.normal(f"labels/{n}", n)


def leaky(z: Tensor) -> Tensor:
    """A function with a kink and no closed form."""
    return torch.nn.functional.leaky_relu(z, 0.2)


def both_matrices(kernel: kernels.Kernel, at: Setting) -> Tensor:
    """The matrix of one set of points and that of two."""
    X, Y = points(at), points(at, 17)
    return torch.cat([kernel(X), kernel(X, Y)], dim=1)


def kernel_cases() -> Iterator[Case]:
    """Every kernel; those of wide networks for several activations, depths and biases."""
    found: dict[str, kernels.Kernel] = {
        "Polynomial": kernels.Polynomial(3, 1.0),
        "Gaussian": kernels.Gaussian(2.0),
        "Laplace": kernels.Laplace(2.0),
        "Matern 1/2": kernels.Matern(0.5, 2.0),
        "Matern 3/2": kernels.Matern(1.5, 2.0),
        "Matern 5/2": kernels.Matern(2.5, 2.0),
        "ArcCosine": random_features.ArcCosine(),
    }
    for activation, depth, sigma_b in (
        ("relu", 2, 0.0),
        ("relu", 25, 0.0),
        ("relu", 4, 0.3),
        ("erf", 3, 0.0),
        ("erf", 3, 0.3),
        ("tanh", 2, 0.3),
        (leaky, 2, 0.0),
        (leaky, 3, 0.3),
    ):
        called = getattr(activation, "__name__", activation)
        name = f"{called}, {depth} layers{', biases' if sigma_b else ''}"
        for kind in (wide.NNGP, ntk.NTK):
            found[f"{kind.__name__} {name}"] = kind(depth, activation, math.sqrt(2), sigma_b)
    for name, kernel in found.items():
        yield Case("kernels", name, partial(both_matrices, kernel))

    def on_the_sphere(at: Setting) -> Tensor:
        X = points(at)
        return ntk.NTK(3, "erf", 1.5, 0.3)(X / X.norm(dim=1, keepdim=True))

    yield Case("kernels", "NTK erf, inputs of one length", on_the_sphere)
    yield Case(
        "kernels", "NTK.both", lambda at: flat(*ntk.NTK(3, "relu", 1.4, 0.3).both(points(at)))
    )
    yield Case("kernels", "NTK.nngp", lambda at: ntk.NTK(3, "erf").nngp(points(at)))
    yield Case(
        "kernels",
        "squared_distances",
        lambda at: kernels.squared_distances(points(at), points(at, 17)),
    )

    def features(draw: Callable[..., random_features.FeatureMap], at: Setting) -> Tensor:
        Phi = draw(40, DIM, at.rng("features"), device=at.device)
        return torch.cat(
            [Phi(points(at)), Phi.kernel(points(at)), Phi.kernel(points(at), points(at, 17))], dim=1
        )

    yield Case(
        "kernels", "RandomFeatures, fourier", partial(features, random_features.fourier_features)
    )
    yield Case("kernels", "RandomFeatures, relu", partial(features, random_features.relu_features))

    def transformed(at: Setting) -> Tensor:
        model = random_features.RandomFeatures(40, random_state=at.rng("features"))
        return model.fit(points(at)).transform(points(at, 17))

    yield Case("kernels", "RandomFeatures, estimator", transformed)

    def duals(name: str, at: Setting) -> Tensor:
        sigma, X = activations.get(name), points(at)
        K, q = X @ X.T, X.square().sum(dim=1)
        pairs = (q[:, None], 0.9 * K, q)
        moments = torch.stack([sigma.second_moment(q), sigma.derivative_moment(q)])
        return torch.cat([sigma.dual(*pairs), sigma.derivative_dual(*pairs), moments])

    for name in ("relu", "erf", "tanh"):
        yield Case("kernels", f"Activation, {name}", partial(duals, name))


def solver_cases() -> Iterator[Case]:
    """Every way to solve (K + λI)α = y, and the Gaussian processes on top."""

    def system(at: Setting) -> tuple[Tensor, Tensor]:
        K = kernels.Laplace(2.0)(points(Setting("cpu", DOUBLE)))
        return at.rounded("K", K, symmetric=True), labels(at)

    def case(name: str, run: Callable[[Setting], Any], group: str = "solvers") -> Case:
        return Case(group, name, run)

    def path(at: Setting) -> linalg.SpectralPath:
        return linalg.SpectralPath(*system(at))

    yield case("cholesky_solve", lambda at: linalg.cholesky_solve(*system(at), 0.1))
    yield case("SpectralPath.ridge", lambda at: path(at).ridge([0.01, 0.1, 1.0]))
    yield case("SpectralPath.flow", lambda at: path(at).flow([0.5, 5.0, 50.0]))
    yield case("SpectralPath.descent", lambda at: path(at).descent(0.1, [1, 10, 100]))
    yield case("SpectralPath.minimum_norm", lambda at: path(at).minimum_norm() * path(at).rank)
    for n in (24, 60):
        name = f"feature_ridge, {'more' if n < 40 else 'fewer'} features than points"
        yield case(
            name,
            lambda at, n=n: linalg.feature_ridge(
                at.normal("Phi", n, 40), labels(at, n), [1e-3, 1e-2, 1.0]
            ),
        )

    def iterative(solve: Callable[..., linalg.Solution], at: Setting, **options: Any) -> Tensor:
        K, y = system(at)
        solution = solve(lambda v: K @ v + v, y, tolerance=8 * at.eps, **options)
        return (
            solution.alpha
            if solution.iterations and solution.converged
            else solution.alpha * math.nan
        )

    def preconditioned(at: Setting) -> linalg.MatVec:
        return linalg.nystrom_preconditioner(system(at)[0][:, :8], np.arange(8), 1.0)

    yield case("richardson", partial(iterative, linalg.richardson, learning_rate=0.1))
    yield case("conjugate_gradients", partial(iterative, linalg.conjugate_gradients))
    yield case("nystrom_preconditioner", lambda at: preconditioned(at)(labels(at)))
    yield case(
        "conjugate_gradients, preconditioned",
        lambda at: iterative(linalg.conjugate_gradients, at, preconditioner=preconditioned(at)),
    )

    def regression(solver: str, at: Setting) -> Tensor:
        model = kernels.KernelRegression(
            kernels.Gaussian(2.0),
            ridge=4.0,
            solver=solver,
            tolerance=8 * at.eps,
            rank=8,
            block=16,
            device=at.device,
            random_state=at.rng("pivots"),
        )
        X, y = (part.cpu().numpy() for part in (points(at), labels(at)))
        return flat(model.fit(X, y).alpha_.to(at.dtype), model.predict(points(at, 17)))

    for solver in kernels.SOLVERS:
        yield case(f"KernelRegression, {solver}", partial(regression, solver))

    def operator(at: Setting) -> kernels.KernelOperator:
        return kernels.KernelOperator(kernels.Gaussian(2.0), points(at), 0.1, block=10, cache=2000)

    yield case("KernelOperator", lambda at: operator(at)(labels(at)))
    yield case("KernelOperator.largest_eigenvalue", lambda at: operator(at).largest_eigenvalue())

    def process(at: Setting) -> gp.GaussianProcess:
        return gp.GaussianProcess(kernels.Gaussian(2.0), 0.1**0.5).fit(points(at), labels(at))

    gauss = partial(case, group="Gaussian processes")
    yield gauss("GaussianProcess.mean", lambda at: process(at).mean(points(at, 17)))
    yield gauss("GaussianProcess.variance", lambda at: process(at).variance(points(at, 17)))
    yield gauss(
        "GaussianProcess.covariance",
        lambda at: process(at).covariance(points(at, 17), points(at, 24)),
    )
    yield gauss(
        "GaussianProcess.sample",
        lambda at: process(at).sample(points(at, 17), 3, at.rng("functions")),
    )
    yield gauss("covariance_root", lambda at: gp.covariance_root(system(at)[0]))
    for t in (3.0, math.inf):
        yield gauss(
            f"after_training, t = {t:g}",
            lambda at, t=t: flat(
                *gp.after_training(
                    ntk.NTK(3, "erf", 1.5, 0.3),
                    points(at),
                    labels(at),
                    points(at, 17),
                    t,
                    initial=wide.NNGP(3, "erf"),
                )
            ),
        )
    yield gauss(
        "random_features.train",
        lambda at: random_features.train(
            at.normal("Phi", 24, 40),
            labels(at),
            at.normal("theta", 3, 40),
            learning_rate=0.1,
            steps=50,
        ),
    )


def network(
    at: Setting, members: int | None = None, **options: Any
) -> tuple[networks.Network, networks.Parameters]:
    """A network of three layers and its parameters."""
    net = networks.Network((DIM, 16, 12, 1), "tanh", 1.5, 0.3, **options)
    return net, net.initialise(at.rng("theta"), members, dtype=at.dtype, device=at.device)


def network_cases() -> Iterator[Case]:
    """Networks, their training and their tangent kernels."""

    def forward(parametrisation: str, at: Setting) -> Tensor:
        net, theta = network(at, 3, parametrisation=parametrisation)
        return flat(net(theta, points(at)), *net.layers(theta, points(at)))

    for name in ("ntk", "standard", "mup"):
        yield Case("networks", f"Network, {name}", partial(forward, name))

    def trained(at: Setting) -> Tensor:
        net, theta = network(at, 3)
        *_, last = networks.descent(
            net, theta, points(at), labels(at), learning_rate=0.02, steps=30
        )
        return flat(*last.values())

    def ensemble(at: Setting) -> Tensor:
        model = networks.TwoLayerEnsemble(
            16, steps=30, weight_decay=0.01, penalty=0.01, random_state=at.rng("W")
        )
        return model.fit(at.normal("X", 2, 20, DIM), at.normal("y", 2, 20)).predict(points(at))

    def linearised(at: Setting) -> Tensor:
        net, theta = network(at)
        moved = {
            name: value + at.normal(f"shift/{name}", *value.shape) for name, value in theta.items()
        }
        return wide.linearise(net, theta)(moved, points(at))

    yield Case("networks", "descent", trained)
    yield Case("networks", "TwoLayerEnsemble", ensemble)
    yield Case("networks", "linearise", linearised)

    def of_network(function: Callable[..., Any], at: Setting, members: int | None = None) -> Any:
        net, theta = network(at, members)
        return function(net, theta, points(at))

    def of_module(outputs: int, at: Setting) -> Tensor:
        module = torch.nn.Sequential(
            torch.nn.Linear(DIM, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)
        )
        for name, parameter in module.named_parameters():
            parameter.data = at.normal(f"module/{name}", *parameter.shape)
        return ntk.empirical_ntk(module, points(at), points(at, 17))

    def empirical(net: networks.Network, theta: networks.Parameters, X: Tensor) -> Tensor:
        return ntk.empirical_ntk(net, X, theta=theta)

    group = "tangent kernels"
    yield Case(group, "empirical_ntk, Network", lambda at: of_network(empirical, at, 3))
    yield Case(group, "empirical_ntk, module", partial(of_module, 1))
    yield Case(group, "empirical_ntk, module with 3 outputs", partial(of_module, 3))
    yield Case(group, "layer_kernels", lambda at: flat(*of_network(ntk.layer_kernels, at)))
    yield Case(group, "tangent_features", lambda at: of_network(wide.tangent_features, at))


def beyond_cases() -> Iterator[Case]:
    """Chapter 5, and Hermite polynomials."""
    group = "chapter 5"

    def measured(at: Setting) -> tuple[Tensor, Tensor]:
        return at.normal("G", 2, 12, 5), at.normal("y", 2, 12)

    yield Case(group, "minimum_frobenius", lambda at: beyond.minimum_frobenius(*measured(at)))
    yield Case(group, "harmonic", lambda at: beyond.harmonic(3, points(at)))
    yield Case(group, "whitener", lambda at: beyond.whitener(at.normal("G", 2, 24, 5)))

    def signed(at: Setting) -> tuple[beyond.SignedNetwork, Tensor, Tensor]:
        net = beyond.SignedNetwork.draw(16, DIM, at.rng("net"), dtype=at.dtype, device=at.device)
        return net, at.normal("V", 16, DIM), points(at)

    def trained(at: Setting) -> Tensor:
        net, _, X = signed(at)
        return net.train(
            X, labels(at), learning_rate=0.5, steps=30, penalty=0.01, rng=at.rng("signs")
        )

    def values(at: Setting) -> Tensor:
        net, V, X = signed(at)
        return flat(net(V, X), net.mean(V, X), net.variance(V, X), *net.taylor(V, X))

    def expected(at: Setting) -> Tensor:
        net, V, X = signed(at)
        return net.expected_loss(V, X, labels(at), 0.1)

    yield Case(group, "SignedNetwork", values)
    yield Case(group, "SignedNetwork.expected_loss", expected)
    yield Case(group, "SignedNetwork.train", trained)

    yield Case(group, "hermite.features", lambda at: hermite.features(points(at), 2))
    yield Case(group, "hermite.polynomials", lambda at: hermite.polynomials(labels(at), 6))
    yield Case(
        group,
        "hermite.coefficients",
        lambda at: hermite.coefficients(torch.tanh, 9, labels(at).square() + 0.1),
        (DOUBLE,),
    )


def target(at: Setting, r: int = 2) -> damian.LatentPolynomial:
    """The chapter's example of this rank."""
    drawn = damian.LatentPolynomial.draw(DIM, damian.EXAMPLES[r], at.rng("U"), at.device)
    return damian.LatentPolynomial(drawn.U.to(at.dtype), drawn.terms)


def damian_cases() -> Iterator[Case]:
    """Chapter 6: targets, gradients, Algorithm 1 and the experiments."""

    def case(name: str, run: Callable[[Setting], Any], *dtypes: torch.dtype) -> Case:
        return Case("chapter 6", name, run, dtypes or (SINGLE, DOUBLE))

    def polynomial(at: Setting) -> Tensor:
        f = target(at)
        return flat(f(points(at)), *f.smoothed(at.normal("S", 9, 2)), f.hessian, f.latent_hessian)

    def samples(at: Setting) -> Tensor:
        f = target(at)
        first, second = f.sample(40, at.rng("x"), 0.1).split(24)
        spread = f.stratified(40, at.rng("z"))
        means = (
            first.mean(first.X),
            second.risk(second.X),
            spread.risk(spread.X),
            damian.clipped_square(first.y),
        )
        return flat(spread.X, spread.y, *means)

    yield case("LatentPolynomial", polynomial)
    yield case("LatentPolynomial.kappa", lambda at: target(at).kappa)
    yield case("Sample", samples)

    def start(at: Setting) -> tuple[Tensor, Tensor]:
        a, W = damian.initialise(40, DIM, at.rng("start"), at.device)
        return a.to(at.dtype), W.to(at.dtype)

    def data(at: Setting) -> tuple[Tensor, Tensor]:
        sample = target(at).sample(200, at.rng("x"), 0.1)
        return sample.X, damian.preprocess(sample.X, sample.y)[2]

    def step(at: Setting) -> Tensor:
        return damian.first_step(*start(at), *data(at), 1.0, 0.5, at.normal("b", 40))

    def gradients(function: Callable[..., Tensor], at: Setting) -> Tensor:
        return function(target(at), start(at)[1], 0.3)

    yield case("preprocess", lambda at: flat(*damian.preprocess(points(at), labels(at))))
    yield case("first_step", step)
    yield case("population_gradient", partial(gradients, damian.population_gradient))
    yield case("gradient_terms", partial(gradients, damian.gradient_terms))
    yield case("alignment", lambda at: damian.alignment(step(at), target(at).U))
    yield case(
        "expected_alignment",
        lambda at: damian.expected_alignment(target(at), [50, 500], start(at)[1], 0.1),
    )

    def fitted(method: Callable[..., damian.TwoLayer], at: Setting) -> tuple[damian.Sample, Tensor]:
        f = target(at)
        train, kept = f.sample(200, at.rng("x")), f.sample(50, at.rng("kept"))
        test = f.stratified(100, at.rng("test"))
        net = method(train.X, train.y, kept, at.rng("net"), width=100, ridges=[1e-3, 1e-1])
        return test, net(test.X) + net.features(test.X).mean(dim=1)

    def shares(at: Setting) -> float:
        test, outputs = fitted(damian.algorithm1, at)
        return damian.fraction_learned(outputs, test, target(at).part([2])(test.X))

    yield case("algorithm1", lambda at: fitted(damian.algorithm1, at)[1])
    yield case("fixed_features", lambda at: fitted(damian.fixed_features, at)[1])
    yield case("fraction_learned", shares)

    def by_kernel(at: Setting) -> Tensor:
        f = target(at)
        sample = f.sample(60, at.rng("x"))
        return damian.kernel_predictions(
            ntk.NTK(2, "relu", 2**0.5, 0.5),
            sample.X,
            sample.y,
            f.stratified(50, at.rng("test")),
            (1e-3, 1e-1),
        )

    yield case("kernel_predictions (float32 inside)", by_kernel, SINGLE)
    yield case(
        "trial",
        lambda at: damian.compare_methods(DIM, 100, at.rng("trial"), points=200, device=at.device),
        DOUBLE,
    )
    yield case(
        "transfer",
        lambda at: damian.transfer(
            DIM, 200, (16, 64), at.rng("transfer"), width=100, points=100, device=at.device
        ),
        DOUBLE,
    )
    yield case(
        "transfer, random first layer",
        lambda at: damian.transfer(
            DIM, 0, (16, 64), at.rng("transfer"), width=100, points=100, device=at.device
        ),
        DOUBLE,
    )
    yield case(
        "step_alignment",
        lambda at: damian.step_alignment(
            DIM,
            200,
            damian.EXAMPLES[1],
            at.rng("align"),
            width=40,
            label=damian.clipped_square,
            device=at.device,
        ),
        DOUBLE,
    )


def patterns(at: Setting, dictionary: bool = True) -> shi.Patterns:
    """The standard example with three relevant patterns of eight, rotated or not."""
    M = np.linalg.qr(seeding.stream("agreement/M").standard_normal((10, 8)))[0]
    P = shi.odd(3)
    return shi.Patterns(
        range(3), P, 8, shi.structured_counts(3, P), M=at.move(M) if dictionary else None
    )


def batch(at: Setting, name: str, n: int = 60) -> shi.Sample:
    """n samples, their inputs rounded as all inputs are."""
    drawn = patterns(at).sample(n, at.rng(name), dtype=at.dtype, device=at.device)
    return shi.Sample(at.rounded(f"{name}/x", drawn.X), drawn.y)


def shi_cases() -> Iterator[Case]:
    """Chapter 7: data, steps, training and the components of the population's step."""

    def case(name: str, run: Callable[[Setting], Any], *dtypes: torch.dtype) -> Case:
        return Case("chapter 7", name, run, dtypes or (SINGLE, DOUBLE))

    def net(at: Setting, kind: str = "truncated") -> shi.Net:
        return shi.initialise(
            8, patterns(at), at.rng("net"), kind=kind, dtype=at.dtype, device=at.device
        )

    def sampled(at: Setting) -> Tensor:
        drawn = patterns(at).sample(40, at.rng("x"), dtype=at.dtype, device=at.device)
        return torch.cat([drawn.X, drawn.y[:, None]], dim=1)

    yield case("Patterns.sample", sampled)
    yield case("Patterns.effective", lambda at: patterns(at).effective, DOUBLE)

    def forward(kind: str, at: Setting) -> Tensor:
        x = batch(at, "x").X
        return torch.cat([net(at, kind).features(x, noise) for noise in (0.0, 0.3)])

    def slopes(kind: str, at: Setting) -> Tensor:
        return flat(shi.slope(labels(at), 0.3, kind), shi.activation(labels(at), 0.3, kind))

    for kind in shi.ACTIVATIONS:
        yield case(f"Net.features, {kind}", partial(forward, kind))
        yield case(f"slope, {kind}", partial(slopes, kind))

    def random_outputs(at: Setting) -> Tensor:
        scales = {"sigma_w": 1.0, "sigma_b": 0.5, "sigma_a": 1.0}
        drawn = shi.random_net(8, 10, at.rng("net"), dtype=at.dtype, device=at.device, **scales)
        half = shi.Net(drawn.W[:8], drawn.b[:8], drawn.a[:8])
        return half(batch(at, "x").X, 0.3)

    yield case("Net of random_net", random_outputs)

    def stages(at: Setting) -> tuple[shi.Net, ...]:
        return shi.two_steps(
            net(at), batch(at, "first"), batch(at, "second"), noise_std=0.3, learning_rate=1.5
        )

    def last(at: Setting) -> shi.Net:
        return shi.Net(stages(at)[2].W, stages(at)[0].b, at.normal("head", 16))

    yield case("two_steps", lambda at: flat(stages(at)[1].W, stages(at)[2].W))

    def all_weights(trained: list[shi.Net]) -> Tensor:
        return flat(*(part for net in trained for part in (net.W, net.b, net.a)))

    def head(at: Setting) -> Tensor:
        third = batch(at, "third")
        return torch.cat([n.a for n in shi.train_head(last(at), third.X, third.y, record=[5, 30])])

    def everything(at: Setting) -> Tensor:
        third, rng = batch(at, "third"), at.rng("batches")
        return all_weights(
            shi.train_all(
                last(at),
                third.X,
                third.y,
                record=[5, 30],
                learning_rate=0.01,
                batch=20,
                rng=rng,
            )
        )

    def tangent(at: Setting) -> Tensor:
        third = batch(at, "third")
        models = shi.train_tangent(last(at), third.X, third.y, record=[5, 30], learning_rate=0.01)
        return torch.cat([model(third.X) for model in models])

    yield case("train_head", head)
    yield case("train_all", everything)
    yield case("train_tangent", tangent)
    yield case("accuracy", lambda at: shi.accuracy(last(at)(batch(at, "x").X), batch(at, "x").y))
    yield case("cosines", lambda at: shi.cosines(stages(at)[2].W, patterns(at).effective))
    yield case(
        "good_network",
        lambda at: shi.good_network(patterns(at), dtype=at.dtype, device=at.device).features(
            batch(at, "x").X
        ),
    )

    def moments(dictionary: bool, at: Setting) -> Tensor:
        start = shi.initialise(
            8, patterns(at, dictionary), at.rng("net"), dtype=at.dtype, device=at.device
        )
        found = shi.components(patterns(at, dictionary), start.W, start.b, 0.3)
        return torch.cat([found.along, found.beta[:, None]], dim=1)

    yield case("components", partial(moments, False), DOUBLE)
    yield case("components, with a dictionary", partial(moments, True), DOUBLE)
    yield case(
        "step_bounds", lambda at: flat(*shi.step_bounds(patterns(at), net(at).W, 0.3)), DOUBLE
    )
    yield case("walsh", lambda at: shi.walsh(at.normal("values", 32, 3)))


def rfm_cases() -> Iterator[Case]:
    """Chapter 8: metrics from the gradients of kernel predictors."""
    group = "chapter 8"
    for name, kernel in {
        "Gaussian": kernels.Gaussian(2.0),
        "Matern 3/2": kernels.Matern(1.5, 2.0),
        "NTK relu": ntk.NTK(3, "relu", 1.4, 0.3),
        "NTK erf": ntk.NTK(3, "erf", 1.4, 0.3),
    }.items():
        yield Case(
            group,
            f"gradients, {name}",
            lambda at, kernel=kernel: rfm.gradients(kernel, points(at, 17), points(at), labels(at)),
        )

    def machine(at: Setting) -> rfm.RecursiveFeatureMachine:
        sample = target(at).sample(60, at.rng("x"))
        return rfm.RecursiveFeatureMachine(kernels.Gaussian(4.0), rounds=2, ridge=1e-3).fit(
            sample.X, sample.y
        )

    yield Case(
        group,
        "RecursiveFeatureMachine.metrics_",
        lambda at: flat(*machine(at).metrics_, machine(at).next_metric_),
    )
    yield Case(group, "RecursiveFeatureMachine.predict", lambda at: machine(at).predict(points(at)))
    yield Case(group, "agop", lambda at: rfm.agop(points(at)))
    yield Case(group, "matrix_sqrt", lambda at: linalg.matrix_sqrt(rfm.agop(points(at))))
    yield Case(
        group, "trace_fraction", lambda at: rfm.trace_fraction(rfm.agop(points(at)), target(at).U)
    )
    yield Case(
        group,
        "subspace_alignment",
        lambda at: rfm.subspace_alignment(rfm.agop(points(at)), target(at).U),
    )
    yield Case(group, "empirical_hessian", lambda at: rfm.empirical_hessian(points(at), labels(at)))
    yield Case(group, "expected_square", lambda at: rfm.expected_square(target(at), 100, 0.1)[0])


CASES: tuple[Case, ...] = (
    *kernel_cases(),
    *solver_cases(),
    *network_cases(),
    *beyond_cases(),
    *damian_cases(),
    *shi_cases(),
    *rfm_cases(),
)
