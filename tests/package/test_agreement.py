"""The table of agreement between devices: its rule, its cases, and all of them on a simulated
device.
"""

import inspect
import json
import sys

import numpy as np
import pytest
import torch
from elsewhere import Elsewhere

from experiments import agreement
from experiments.agreement import FACTOR, compared
from experiments.agreement_cases import CASES, DOUBLE, SINGLE, Case, Setting, points
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
    shi,
    wide,
)
from featlearn.notebook import tables

MODULES = (
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
    shi,
    wide,
)
ON_THE_CPU = {shi.krawtchouk: "whole numbers", damian.relu_coefficients: "a few numbers"}


def public(module):
    """The functions, and the methods of the classes, that a module defines for others, by name."""
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None) or ""
        if name.startswith("_") or not f"{home}.".startswith(f"{module.__name__}."):
            continue
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value) and not inspect.isabstract(value):
            for attribute, member in vars(value).items():
                member = getattr(member, "__func__", getattr(member, "fget", member))
                hidden = attribute.startswith("_") and attribute != "__call__"
                if inspect.isfunction(member) and not hidden:
                    yield f"{module.__name__}.{name}.{attribute}", member


def test_every_public_function_is_in_some_case():
    """Kernels, solvers, training, experiments: a new one must be added to the cases."""
    ran, before = set(), sys.gettrace()
    sys.settrace(lambda frame, event, _: ran.add(frame.f_code))  # calls only: no lines, no C
    try:
        for case in CASES:
            case.run(Setting("cpu", case.dtypes[0]))
    finally:
        sys.settrace(before)
    assert {
        name
        for module in MODULES
        for name, function in public(module)
        if function.__code__ not in ran and function not in ON_THE_CPU
    } == set()


def test_names_differ_and_every_kernel_and_solver_is_named():
    names = {(case.group, case.name) for case in CASES}
    assert len(names) == len(CASES)
    text = " ".join(case.name for case in CASES)
    classes = [
        value for module in MODULES for value in vars(module).values() if inspect.isclass(value)
    ]
    found = [
        c for c in classes if issubclass(c, kernels.KernelFunction) and not inspect.isabstract(c)
    ]
    assert {c.__name__ for c in found if c.__name__ not in text} == set()
    assert [s for s in kernels.SOLVERS if f"KernelRegression, {s}" not in text] == []
    solvers = [name.split(".")[2] for name, _ in public(linalg)]
    assert [name for name in solvers if name not in text] == ["Solution"]


@pytest.fixture(autouse=True)
def without_launches(monkeypatch):
    """A simulated device launches no kernel; `test_fused` has an interpreter for them."""
    monkeypatch.setattr(kernels, "_on_chip", lambda *points: None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_keeps_the_rule_and_its_device(case):
    """On a simulated device no tensor of the CPU meets one of the device, and values stay.

    The rounding of float32, seen from float64, is within the rule: another device may round as
    much, in another way.
    """
    expected, yardstick = agreement.reference(case, case.dtypes[0])
    with Elsewhere():
        result = agreement.values(agreement.on_device(case, case.dtypes[0], "cuda"))
    assert agreement.distance(result, expected) <= FACTOR * yardstick
    if case.dtypes == (SINGLE, DOUBLE):
        exact = agreement.values(case.run(Setting("cpu", DOUBLE)))
        assert agreement.distance(expected, exact) <= FACTOR * yardstick


def mixed_calls():
    """Calls whose first argument is an array, with the tensor that it meets."""
    X, y, W = np.eye(4, 3) + 0.1, np.arange(4.0), np.ones((5, 3))
    k = kernels.Gaussian()

    def on(array):
        return torch.as_tensor(array, device="cuda")

    yield "kernel", lambda: k(X, on(X))
    yield "NTK.both", lambda: ntk.NTK().both(X, on(X))[1]
    yield "squared_distances", lambda: kernels.squared_distances(X, on(X))
    yield "KernelRegression", lambda: kernels.KernelRegression(k, 1.0).fit(X, on(y)).predict(on(X))
    yield "cholesky_solve", lambda: linalg.cholesky_solve(np.eye(4), on(y))
    yield "feature_ridge", lambda: linalg.feature_ridge(X, on(y), [1.0])
    yield "GaussianProcess", lambda: gp.GaussianProcess(k, 1.0).fit(X, on(y)).mean(X)
    yield "after_training", lambda: gp.after_training(k, X, y, on(X))[0]
    yield "RandomFeatures", lambda: random_features.FeatureMap(on(W), on(W[:, 0]), torch.relu)(X)
    yield "train", lambda: random_features.train(X, y, on(W), learning_rate=0.1, steps=1)
    yield (
        "TwoLayerEnsemble",
        lambda: networks.TwoLayerEnsemble(4, steps=1).fit(X[None], on(y[None])).predict(X),
    )
    yield "minimum_frobenius", lambda: beyond.minimum_frobenius(X, on(y))
    yield "SignedNetwork", lambda: beyond.SignedNetwork(W, on(W[:, 0]))(W, X)
    yield "Sample", lambda: damian.Sample(X, on(y), np.full(4, 0.25)).risk(y)
    target = damian.LatentPolynomial(np.eye(3, 1), {(2,): 1.0})
    yield "LatentPolynomial", lambda: damian.LatentPolynomial(on(target.U), target.terms)(X)
    yield "preprocess", lambda: damian.preprocess(X, on(y))[2]
    yield "first_step", lambda: damian.first_step(W[:, 0], on(W), X, y, 1.0)
    yield "Net", lambda: shi.Net(W, on(W[:, 0]), W[:, 0])(X)
    yield "cosines", lambda: shi.cosines(W, on(X))
    yield "gradients", lambda: rfm.gradients(k, X, on(X), y)
    yield (
        "RecursiveFeatureMachine",
        lambda: rfm.RecursiveFeatureMachine(k, rounds=0).fit(X, on(y)).predict(on(X)),
    )
    yield "empirical_hessian", lambda: rfm.empirical_hessian(X, on(y))


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in mixed_calls()])
def test_arrays_follow_the_tensor_beside_them(call):
    with Elsewhere():
        assert call().device.type == "cuda"


def planted(at):
    """Off by 1e-4 on the device."""
    return points(at) * (1 + 1e-4 * (at.device == "cuda"))


def test_a_wrong_result_is_found():
    with Elsewhere():
        row = compared(Case("planted", "wrong", planted), SINGLE, "cuda")
        right = compared(Case("planted", "right", points), SINGLE, "cuda")
        lost = compared(Case("planted", "lost", lambda at: points(at).cpu()), SINGLE, "cuda")
        mixed = compared(
            Case("planted", "mixed", lambda at: points(at) + torch.ones(6)),
            DOUBLE,
            "cuda",
        )
    assert not row["agrees"]
    assert row["gap"] == pytest.approx(1e-4, rel=0.01)
    assert right["agrees"]
    assert lost["error"] == "RuntimeError: the result is on cpu"
    assert "two devices" in mixed["error"]
    assert not (lost["agrees"] or mixed["agrees"])


def test_a_case_that_raises_does_not_end_the_table(monkeypatch, tmp_path, capsys):
    def broken(at):
        raise ValueError("no such thing")

    cases = (
        Case("solvers", "broken", broken),
        Case("solvers", "nan", lambda at: points(at) * torch.nan),
    )
    monkeypatch.setattr(agreement, "CASES", (*cases, CASES[0]))
    assert agreement.main(["--device", "cpu", "--out", str(tmp_path / "out.json")]) == 1
    stored = json.loads((tmp_path / "out.json").read_text())
    assert [row["agrees"] for row in stored["rows"]] == [False, False, False, False, True, True]
    assert stored["rows"][0]["error"] == "ValueError: no such thing"
    assert {"command", "commit", "machine", "seed"} <= stored.keys()
    assert "3 cases, 6 rows, 4 disagree" in capsys.readouterr().out
    html = tables.agreement(stored)
    assert html.count("<tr>") == 4
    assert html.count("✗ ValueError: no such thing") == 2
    assert html.count("✓ agrees") == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_cuda_agrees_with_the_cpu():
    assert [agreement.line(row) for row in agreement.rows("cuda") if not row["agrees"]] == []
