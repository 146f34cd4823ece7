"""The benchmark's book-keeping; nothing is timed."""

import numpy as np
import pytest
import torch

from experiments import tangent_kernels
from featlearn import data

RESULT = {
    "kind": "analytic",
    "n": 10,
    "dtype": "float32",
    "activation": "relu",
    "sigma_b": 0.3,
    "hidden": 3,
    "seconds": {"featlearn": [0.1, 0.2, 0.1], "neural-tangents": [0.4, 0.4, 0.5]},
}


def test_ratios_compare_times_of_one_round():
    assert tangent_kernels.ratios(
        RESULT["seconds"], "neural-tangents", "featlearn"
    ) == pytest.approx((4, 2, 5))


def test_tables_show_every_contestant():
    text = tangent_kernels.table([RESULT])
    assert "4.00x  [2.00, 5.00]" in text
    stored = {"machine": "a laptop", "results": [RESULT]}
    html = tangent_kernels.as_html(stored, "analytic")
    assert 'aria-label="Times, analytic, a laptop"' in html
    assert html.count("<tr>") == 2
    assert "<td>100</td><td>neural-tangents</td><td>400</td><td><b>4</b> [2, 5]</td>" in html
    assert tangent_kernels.as_html(stored, "empirical").count("<tr>") == 1
    alone = {**RESULT, "seconds": {"featlearn": [0.0123]}}
    assert "<td>12.3</td><td></td>" in tangent_kernels.as_html(
        {**stored, "results": [alone]}, "analytic"
    )


def test_contestants_of_the_empirical_case_agree(monkeypatch):
    """At a small size: the layer-by-layer kernel is that of the same network as a module."""
    monkeypatch.setattr(bench, "WIDTH", 8)
    monkeypatch.setattr(bench, "POINTS", 5)
    runs = tangent_kernels.empirical_runs("cpu")
    any_module, tutorial = runs["featlearn, any module"](), runs["jacrev + vmap"]()
    torch.testing.assert_close(any_module, tutorial[:, :, 0, 0], rtol=1e-4, atol=1e-5)
    assert runs["featlearn, layer by layer"]().shape == (5, 5)


def test_every_case_has_its_contestants():
    for case in tangent_kernels.cases("cpu"):
        small = {**case, "n": 6}
        if case["kind"] == "analytic":
            runs = tangent_kernels.contestants(small, "cpu")
            assert next(iter(runs)) == "featlearn"
            assert all(np.asarray(run()).shape == (6, 6) for run in runs.values())


@pytest.mark.parametrize("name", ["speed", "speed_cuda"])
def test_stored_times_say_where_they_come_from(name):
    stored = data.load(name)
    assert stored["machine"]
    assert stored["date"]
    assert stored["versions"]["torch"]
    for result in stored["results"]:
        rounds = {len(seconds) for seconds in result["seconds"].values()}
        assert rounds == {result["rounds"]}
        assert min(min(seconds) for seconds in result["seconds"].values()) > 0
