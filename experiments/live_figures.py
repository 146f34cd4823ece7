"""The data behind the live figures of the site."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import Tensor
from torch.func import vmap

from experiments import stored
from experiments.single_index import FAMILIES, tune
from featlearn import damian, harmonics, networks, ntk, single_index, wide
from featlearn.kernels import KernelRegression
from featlearn.ntk import NTK
from featlearn.seeding import stream

TARGET = stored.DATA / "live.json"
SCALES = {"erf": (1.5, 0.3), "relu": (2**0.5, 0.3)}
ANGLES = 0.3 + np.arange(6) * np.pi / 3


def on_circle(angles: np.ndarray) -> Tensor:
    r"""The points $(\cos, \sin)$ of these angles, shape (n, 2)."""
    return torch.as_tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def circle() -> dict[str, Any]:
    """Six points on the circle and their labels, those of chapter 4."""
    return {"angles": ANGLES.tolist(), "labels": np.sin(ANGLES).tolist(), "scales": SCALES}


def labels(angles: np.ndarray) -> np.ndarray:
    r"""$3\sin2\beta$, which networks learn in `width`: chapter 3's target."""
    return 3 * np.sin(2 * angles)


def flow(n: int = 40) -> dict[str, Any]:
    """The points of chapter 1's figure on gradient flow."""
    rng = stream("ker-flow/figure")
    x = rng.uniform(0, 2 * np.pi, n)
    y = np.sin(x) + 0.5 * np.sin(4 * x) + 0.3 * rng.standard_normal(n)
    return {"x": x.tolist(), "y": y.tolist()}


def trained(
    kind: str,
    width: int,
    members: int = 40,
    points: int = 1441,
    step: float = 0.05,
    steps: int = 60,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An ensemble at time 3 and its linearisations at `points` angles from -π to π, and the largest
    gap of each member there.
    """
    activation, mean_field = kind.removesuffix(" mean-field"), kind.endswith("mean-field")
    scale = width**-0.5 if mean_field else 1.0
    net = networks.Network((2, width, 1), activation, *SCALES[activation])
    X, y = on_circle(ANGLES).float(), torch.as_tensor(labels(ANGLES)).float()
    everywhere = torch.cat([X, on_circle(np.linspace(-np.pi, np.pi, points)).float()])
    theta0 = net.initialise(stream(f"live/width/{kind}/{width}"), members, dtype=torch.float32)
    *_, theta = networks.descent(net, theta0, X, y, learning_rate=step, steps=steps, scale=scale)
    linear = scale * net(theta0, everywhere)

    def kernel(at: networks.Parameters) -> Tensor:
        features = wide.tangent_features(net, at, everywhere)
        return features @ features[:6].T

    K = vmap(kernel, chunk_size=max(1, 4096 // width))(theta0)
    for _ in range(steps):
        linear = linear - step * (K @ (linear[:, :6] - y)[..., None])[..., 0]
    f = scale * net(theta, everywhere)
    gap = (f - linear).abs().amax(dim=1)
    return tuple(part.double().numpy() for part in (f[:, 6:], linear[:, 6:], gap))


def width(
    kinds: tuple[str, ...] = ("relu", "erf", "erf mean-field"),
    widths: tuple[int, ...] = tuple(2**k for k in range(3, 13)),
    shown: int = 3,
    every: int = 12,
) -> dict[str, Any]:
    """Networks and their linearisations after training.

    The curves of a few, and 10, 50 and 90 % quantiles of the gap of forty.
    """
    runs = {}
    for kind in kinds:
        for m in widths:
            f, linear, gap = trained(kind, m)
            runs[f"{kind}/{m}"] = {
                "network": np.round(f[:shown, ::every], 3).tolist(),
                "linear": np.round(linear[:shown, ::every], 3).tolist(),
                "gap": [float(f"{q:.3g}") for q in np.quantile(gap, [0.1, 0.5, 0.9])],
            }
    angles = (ANGLES + np.pi) % (2 * np.pi) - np.pi
    return {
        "angles": angles.tolist(),
        "labels": labels(angles).tolist(),
        "kinds": list(kinds),
        "widths": list(widths),
        "runs": runs,
    }


def neurons(
    d: int = 40,
    count: int = 60,
    ratios: tuple[float, ...] = tuple(2 ** (k / 2) for k in range(-6, 11)),
    sets: int = 8,
) -> dict[str, Any]:
    r"""Neurons $w_j/\|w_j\|$ in the plane of $S^*$, at the start and after one step on the first $n
    = q\,d^2$ samples, $q$ in `ratios`.

    The target is chapter 6's example of rank 2. With it, 10, 50 and 90 % quantiles of the alignment
    over `sets` data sets.
    """
    rng = stream("live/neurons")
    target = damian.LatentPolynomial.draw(d, damian.EXAMPLES[2], rng)
    a, W = damian.initialise(2 * count, d, rng)
    a, W = a[:count], W[:count]
    sample = target.sample(round(ratios[-1] * d * d), rng)

    def in_plane(weights: Tensor) -> list[list[float]]:
        aligned.append(round(damian.alignment(weights, target.U), 3))
        return np.round(
            ((weights / weights.norm(dim=1, keepdim=True)) @ target.U).numpy(), 3
        ).tolist()

    aligned: list[float] = []
    samples = [round(q * d * d) for q in ratios]
    stops = [in_plane(W)]
    for n in samples:
        X, y = sample.X[:n], sample.y[:n]
        stops.append(in_plane(damian.first_step(a, W, X, damian.preprocess(X, y)[2], 1.0)))
    rows = [
        [
            damian.step_alignment(
                d, n, damian.EXAMPLES[2], stream(f"live/neurons/{n}/{run}"), width=200
            )
            for n in samples
        ]
        for run in range(sets)
    ]
    quantiles = np.quantile(rows, [0.1, 0.5, 0.9], axis=0).T
    limit = in_plane(damian.population_gradient(target, W) * a[:, None])
    return {
        "d": d,
        "ratios": [float(f"{q:.4g}") for q in ratios],
        "samples": samples,
        "arrows": [*stops, limit],
        "aligned": aligned,
        "alignment": np.round(quantiles, 3).tolist(),
    }


def race(
    dims: tuple[int, ...] = (12, 18, 24, 32),
    sizes: tuple[int, ...] = (60, 120, 240, 480, 960),
    runs: int = 8,
    shown: int = 120,
) -> dict[str, Any]:
    """Tuned kernels and networks on n samples of |z|, z one unknown direction in d dimensions.

    Their errors on `runs` draws (median, least, greatest), what the first of them says at `shown`
    test points, and what n fixed features can do at best. Both are tuned as on page 1.4.
    """
    cases = [(d, n) for d in dims for n in sizes]
    jobs = Parallel(n_jobs=-1)(delayed(_run)(d, n, runs, shown) for d, n in cases)
    found: dict[str, Any] = {}
    for (d, n), row in zip(cases, jobs, strict=True):
        found.setdefault(str(d), {})[str(n)] = row
    fine = np.unique(np.geomspace(sizes[0], sizes[-1], 60).astype(int))
    degrees = [2, 4, 6, 8, 10]
    bounds, points = {}, {}
    for d in dims:
        g = single_index.link("|z|", d)
        energies = harmonics.ridge_energies(g, d, degrees, kinks=[0.0])
        floor = [harmonics.fixed_feature_bound(int(n), d, degrees, energies) for n in fine]
        bounds[str(d)] = [float(f"{value:.3g}") for value in floor]
        z = _test_points(d, shown)[..., 0]
        points[str(d)] = {"z": np.round(z, 2).tolist(), "g": np.round(g(z), 2).tolist()}
    return {"d": list(dims), "n": list(sizes), "fine": fine.tolist(), "bound": bounds,
            "points": points, "runs": found}  # fmt: skip


def _test_points(d: int, shown: int) -> np.ndarray:
    """Points of the sphere whose first coordinates are spread like those of all points."""
    X = harmonics.sphere(shown * 20, d, stream(f"live/race/points/{d}"))
    return X[np.argsort(X[:, 0])[10::20]]


def _run(d: int, n: int, runs: int, shown: int) -> dict[str, Any]:
    """One size of the race."""
    tuned, g = tune("|z|", n, d), single_index.link("|z|", d)
    rng = stream(f"live/race/{d}/{n}")
    U, X, y = single_index.draw(g, d, n + 1500, runs, rng)
    sample, test = (X[:, :n], y[:, :n]), (X[:, n:], y[:, n:])
    family = FAMILIES[tuned["kernel"]["family"]]
    kernel, ridge = family(tuned["kernel"]["factor"] * d**0.5), tuned["kernel"]["ridge"]
    net = single_index.train(*sample, **tuned["network"], random_state=rng)
    errors = {
        "kernel": single_index.kernel_errors(kernel, [ridge], *sample, *test)[:, 0].numpy(),
        "network": single_index.network_errors(net, *test).numpy(),
    }
    # The test points in the coordinates of the first run: their first one along its direction.
    Q = np.linalg.qr(np.c_[U[0], np.eye(d)])[0]
    Q[:, 0] *= np.sign(Q[:, 0] @ U[0])
    new = _test_points(d, shown) @ Q.T
    (X_one, *_), (y_one, *_) = sample
    one = KernelRegression(kernel, ridge=ridge).fit(X_one, y_one - y_one.mean())
    says = {
        "kernel": np.asarray(one.predict(new)) + y_one.mean(),
        "network": net.predict(torch.as_tensor(new).float())[0].double().numpy(),
    }
    return {
        name: {
            "error": [float(f"{value:.3g}") for value in (e.min(), np.median(e), e.max())],
            "says": np.round(says[name], 2).tolist(),
        }
        for name, e in errors.items()
    }


def lazy(
    scales: tuple[float, ...] = (4, 2, 1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64),
    m: int = 1024,
    shown: int = 100,
) -> dict[str, Any]:
    """The network of page 3.2 at time 10 for several output scales, from the same initial weights.

    The function and its linearisation, `shown` input weights before and after, and the tangent
    kernel on the training points before and after, as a fraction of its largest entry.
    """
    net = networks.Network((2, m, 1), "relu", *SCALES["relu"])
    theta0 = net.initialise(stream("wide-lin/figure"), dtype=torch.float32)
    X, y = on_circle(ANGLES).float(), torch.as_tensor(labels(ANGLES)).float()
    turn = np.linspace(-np.pi, np.pi, 73)
    points = torch.cat([X, on_circle(turn).float()])
    K, start = ntk.empirical_ntk(net, points, X, theta=theta0), theta0["W1"][:shown]
    stops = []
    for alpha in scales:
        # Enough steps for time 10 at a rate that is stable for every scale.
        *_, theta = networks.descent(net, theta0, X, y, learning_rate=0.01, steps=1000, scale=alpha)
        linear = alpha * net(theta0, points)
        for _ in range(1000):
            linear = linear - 0.01 * K @ (linear[:6] - y)
        after = ntk.empirical_ntk(net, X, theta=theta)
        stops.append({
            "scale": alpha,
            "network": np.round((alpha * net(theta, points))[6:].numpy(), 2).tolist(),
            "linear": np.round(linear[6:].numpy(), 2).tolist(),
            "end": np.round(theta["W1"][:shown].numpy(), 2).tolist(),
            "positive": (theta["W2"][0, :shown] > 0).int().tolist(),
            "kernel": np.round((after / K[:6].max()).numpy(), 3).tolist(),
            "moved": round(((theta["W1"] - theta0["W1"]).norm() / theta0["W1"].norm()).item(), 4),
            "changed": round(((after - K[:6]).norm() / K[:6].norm()).item(), 4),
        })  # fmt: skip
    return {
        "labels": np.round(y.numpy(), 3).tolist(),
        "angles": ((ANGLES + np.pi) % (2 * np.pi) - np.pi).tolist(),
        "start": np.round(start.numpy(), 2).tolist(),
        "kernel": np.round((K[:6] / K[:6].max()).numpy(), 3).tolist(),
        "stops": stops,
    }


def lift(n: int = 80) -> dict[str, Any]:
    """Points of page 1.1 on two circles, fewer."""
    rng = stream("ker-lift/figure")
    y = rng.choice([-1, 1], n)
    angle = rng.uniform(0, 2 * np.pi, n)
    return {"angle": np.round(angle, 3).tolist(), "label": y.tolist()}


def staircase(
    d: int = 12,
    powers: tuple[float, ...] = (0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.25),
) -> dict[str, Any]:
    """How much of degrees 1 to 4 a kernel and a network learn from n = d^s samples of a target in
    one direction, of the same size in each degree; and the kernel's formula.

    Means of as many runs as have six thousand samples in all, at least four and at most sixty.

    The learning rate and the weight decay of the network, and the ridge of the kernel, are those of
    the least error on other draws.
    """
    degrees = (1, 2, 3, 4)
    sizes = [harmonics.harmonic_dimension(d, k) for k in degrees]
    part = lambda k, z: sizes[k - 1] ** 0.5 * harmonics.gegenbauer(k, z / d**0.5, d)  # noqa: E731
    g = lambda z: sum(part(k, z) for k in degrees) / 2  # noqa: E731
    everything = range(13)
    eigenvalues = harmonics.zonal_eigenvalues(np.exp, d, everything)
    dimensions = [harmonics.harmonic_dimension(d, k) for k in everything]
    exponential = lambda A, B=None: torch.exp(A @ (A if B is None else B).T / d)  # noqa: E731
    ridges = (1e-6, 1e-4, 1e-2)

    def draws(n: int, name: str) -> tuple[Any, Any, Any]:
        rng = stream(f"live/staircase/{name}/{n}")
        runs = min(60, max(4, 6000 // n))
        U, X, y = single_index.draw(g, d, n + 3000, runs, rng)
        return U, (X[:, :n], y[:, :n]), (X[:, n:], y[:, n:])

    def learned(predictions: Any, X: Any, U: Any) -> list[float]:
        """The coefficients of the target's parts in the predictions, by least squares."""
        found = []
        for f, x, u in zip(np.asarray(predictions), X, U, strict=True):
            parts = np.stack([part(k, x @ u) / 2 for k in degrees], axis=1)
            found.append(np.linalg.lstsq(parts, f, rcond=None)[0])
        return np.round(np.mean(found, axis=0), 3).tolist()

    rows: dict[str, list[Any]] = {"n": [], "kernel": [], "network": [], "formula": []}
    for s in powers:
        n = round(d**s)
        _, sample, test = draws(n, "tune")
        ridge = ridges[
            int(
                single_index.kernel_errors(exponential, ridges, *sample, *test).mean(dim=0).argmin()
            )
        ]
        options = [
            {"width": 64, "steps": 1000, "learning_rate": rate, "weight_decay": decay}
            for rate in (0.01, 0.03, 0.1) for decay in (0.0, 0.1, 0.3, 1.0)
        ]  # fmt: skip
        tried = [
            single_index.network_errors(single_index.train(*sample, **o, random_state=0), *test)
            .mean()
            .item()
            for o in options
        ]
        U, sample, (X, _) = draws(n, "run")
        net = single_index.train(*sample, **options[int(np.argmin(tried))], random_state=1)
        fits = [
            KernelRegression(exponential, ridge=ridge).fit(a, b)
            for a, b in zip(*sample, strict=True)
        ]
        rows["n"].append(n)
        rows["kernel"].append(
            learned(
                np.stack([np.asarray(f.predict(x)) for f, x in zip(fits, X, strict=True)]), X, U
            )
        )
        rows["network"].append(learned(net.predict(torch.as_tensor(X).float()), X, U))
        theory = harmonics.learnability(eigenvalues, dimensions, n, ridge)
        rows["formula"].append(np.round(theory[1:5], 3).tolist())
    return {"d": d, "powers": list(powers), "sizes": sizes, **rows}


def modes(members: int = 5, width: int = 8192, steps: int = 500) -> dict[str, Any]:
    """Page 4.2's training on three frequencies: what is left of each, and the function, at times
    spread evenly on a logarithmic scale; networks (median of `members`, one function) and kernel.
    """
    n, frequencies = 16, (1, 2, 4)
    angle, turn = 2 * np.pi * np.arange(n) / n, np.linspace(0, 2 * np.pi, 91)
    X, y = on_circle(angle), torch.as_tensor(sum(np.cos(k * angle) for k in frequencies))
    points = torch.cat([X, on_circle(turn)])
    kernel = NTK(2, "relu", *SCALES["relu"])
    K, f = kernel(points, X), torch.zeros(len(points), dtype=torch.float64)
    eta = 0.5 / torch.linalg.eigvalsh(K[:n])[-1].item()
    net = networks.Network((2, width, 1), "relu", *SCALES["relu"])
    theta0 = net.initialise(stream("ntk-modes/networks"), members, dtype=torch.float32)
    at0 = net(theta0, points.float())
    stops = np.r_[0, np.unique(np.geomspace(1, steps, 24).astype(int))]
    waves = torch.as_tensor(np.stack([np.cos(k * angle) for k in frequencies]))
    left = lambda values: (1 - values @ waves.T * 2 / n).numpy()  # noqa: E731
    rows: dict[str, list[Any]] = {
        "time": [], "network": [], "kernel": [], "f_network": [], "f_kernel": []
    }  # fmt: skip
    labelled = at0[:, :n] + y.float()
    for step, theta in enumerate(
        networks.descent(net, theta0, X.float(), labelled, learning_rate=eta, steps=steps)
    ):
        if step in stops:
            g = (net(theta, points.float()) - at0).double()
            rows["time"].append(float(f"{eta * step:.3g}"))
            rows["network"].append(np.round(np.median(left(g[:, :n]), axis=0), 3).tolist())
            rows["kernel"].append(np.round(left(f[:n]), 3).tolist())
            rows["f_network"].append(np.round(g[0, n:].numpy(), 2).tolist())
            rows["f_kernel"].append(np.round(f[n:].numpy(), 2).tolist())
        f = f - eta * K @ (f[:n] - y)
    return {
        "frequencies": list(frequencies),
        "angles": angle.tolist(),
        "y": np.round(y.numpy(), 3).tolist(),
        **rows,
    }


FIGURES = (circle, flow, width, neurons, race, lazy, lift, modes, staircase)


def main(arguments: list[str]) -> int:
    """Compute the data of all live figures and write them."""
    options = stored.options("live-figures", "Compute the data of the live figures.", TARGET)
    target = options.parse_args(arguments).out
    figures = {figure.__name__: figure() for figure in FIGURES}
    stored.write(target, {**stored.origin("python -m experiments live-figures"), **figures})
    return 0
