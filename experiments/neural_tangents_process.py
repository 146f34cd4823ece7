"""neural-tangents as a contestant: a process in an environment of its own that times tasks.

Started by `experiments.tangent_kernels` with the Python of that environment; imports nothing of
featlearn. Each line of standard input is a task, a JSON object, and is answered with one: the
seconds. The first answer to a task also leaves a file of values.
"""

import json
import sys
import time

import jax
import numpy as np

if sys.argv[1] == "float64":
    jax.config.update("jax_enable_x64", True)

import neural_tangents as nt
from neural_tangents import stax

tasks = {}


def network(hidden, activation, width, sigma_w, sigma_b):
    """The fully connected network with this many hidden layers, as neural-tangents describes it."""
    phi = {"relu": stax.Relu, "erf": stax.Erf}[activation]
    bias = sigma_b if sigma_b > 0 else None
    layers = [stax.Dense(width, W_std=sigma_w, b_std=bias)]
    for _ in range(hidden - 1):
        layers += [phi(), stax.Dense(width, W_std=sigma_w, b_std=bias)]
    return stax.serial(*layers, phi(), stax.Dense(1, W_std=sigma_w, b_std=bias))


def prepare(task):
    """A function without arguments that computes the kernel of this task."""
    X = np.load(task["X"])
    init, apply, kernel = network(
        task["hidden"], task["activation"], task["width"], task["sigma_w"], task["sigma_b"]
    )
    if task["kind"] == "analytic":
        compute = jax.jit(lambda x: kernel(x, None, "ntk"))
        return lambda: compute(X).block_until_ready()
    parameters = init(jax.numpy.zeros(2, dtype="uint32"), (-1, X.shape[1]))[1]
    empirical = nt.empirical_ntk_fn(
        apply,
        trace_axes=(-1,),
        vmap_axes=0,
        implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES,
    )
    compute = jax.jit(lambda x, p: empirical(x, None, p))
    return lambda: compute(X, parameters).block_until_ready()


for line in sys.stdin:
    task = json.loads(line)
    key = json.dumps(task, sort_keys=True)
    if key not in tasks:
        tasks[key] = prepare(task)
        value = tasks[key]()
        if task["kind"] == "analytic":
            np.save(task["values"], np.asarray(value)[:200, :200])
    start = time.perf_counter()
    tasks[key]()
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
