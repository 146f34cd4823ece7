/* The numbers behind the live figures, in double precision, held to the package's own by a test.
   Matrices are arrays of rows. */
(() => {
  "use strict";

  const dot = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
  const multiply = (A, v) => A.map((row) => dot(row, v));
  const column = (A, j) => A.map((row) => row[j]);

  /* Eigenvalues, ascending, and eigenvectors (columns of U) of a symmetric matrix, by Jacobi's rotations. */
  function eigh(matrix) {
    const n = matrix.length;
    const A = matrix.map((row) => row.slice());
    const U = A.map((_, i) => A.map((_, j) => Number(i === j)));
    const size = Math.hypot(...A.flat());
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0;
      for (let p = 0; p < n; p++) for (let q = 0; q < p; q++) off = Math.max(off, Math.abs(A[p][q]));
      if (off <= 1e-17 * size) break;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          if (A[p][q] === 0) continue;
          const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
          const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
          const c = 1 / Math.hypot(t, 1);
          const s = t * c;
          const turn = (u, v) => [c * u - s * v, s * u + c * v];
          for (let k = 0; k < n; k++) [A[k][p], A[k][q]] = turn(A[k][p], A[k][q]);
          for (let k = 0; k < n; k++) [A[p][k], A[q][k]] = turn(A[p][k], A[q][k]);
          for (let k = 0; k < n; k++) [U[k][p], U[k][q]] = turn(U[k][p], U[k][q]);
        }
      }
    }
    const order = A.map((_, i) => i).sort((i, j) => A[i][i] - A[j][j]);
    return { s: order.map((i) => A[i][i]), U: U.map((row) => order.map((i) => row[i])) };
  }

  /* φ_t(s) = (1 − e^(−st))/s, and at t = ∞ the pseudo-inverse; zero where s is zero to rounding. */
  const clock = (s, t) => {
    const zero = s.length * 2.3e-16 * Math.max(...s);
    return s.map((value) => (value > zero ? -Math.expm1(-value * t) / value : 0));
  };

  /* E[φ(z)φ(z′)] and E[φ′(z)φ′(z′)] over a Gaussian pair with variances q, p and covariance c. */
  const duals = {
    relu(q, c, p) {
      const r = Math.sqrt(q * p);
      const angle = Math.acos(Math.max(-1, Math.min(1, c / r)));
      const rest = Math.PI - angle;
      return [(r * (Math.sin(angle) + rest * Math.cos(angle))) / (2 * Math.PI), rest / (2 * Math.PI)];
    },
    erf(q, c, p) {
      const r = Math.sqrt((1 + 2 * q) * (1 + 2 * p));
      const sine = (2 * c) / r;
      return [(2 / Math.PI) * Math.asin(sine), 4 / Math.PI / (r * Math.sqrt(1 - sine * sine))];
    },
  };

  /* Σ^L and Θ^L between the rows of X and of Y, for a network {depth, activation, sigmaW, sigmaB}. */
  function kernels({ depth, activation, sigmaW, sigmaB }, X, Y) {
    const dual = duals[activation];
    const layer = (mean) => sigmaW ** 2 * mean + sigmaB ** 2;
    const variances = (x) => {
      const q = [layer(dot(x, x) / x.length)];
      while (q.length < depth) q.push(layer(dual(q.at(-1), q.at(-1), q.at(-1))[0]));
      return q;
    };
    const pair = (x, q, y, p) => {
      let sigma = layer(dot(x, y) / x.length);
      let theta = sigma;
      for (let l = 0; l < depth - 1; l++) {
        const [value, slope] = dual(q[l], sigma, p[l]);
        sigma = layer(value);
        theta = theta * sigmaW ** 2 * slope + sigma;
      }
      return { sigma, theta };
    };
    const [qX, qY] = [X.map(variances), Y.map(variances)];
    const values = X.map((x, i) => Y.map((y, j) => pair(x, qX[i], y, qY[j])));
    return {
      nngp: values.map((row) => row.map((value) => value.sigma)),
      ntk: values.map((row) => row.map((value) => value.theta)),
    };
  }

  /* Mean and standard deviation at new points of a model that starts as GP(0, Σ) and trains with the kernel K until t.
     For K = Σ and t = ∞ this is the posterior. `across` are matrices new × training, `variance` is Σ(x, x). */
  function afterTraining({ K, Sigma, across, variance, y, t = Infinity }) {
    const { s, U } = eigh(K);
    const psi = clock(s, t);
    const inverse = U.map((u) => U.map((v) => u.reduce((sum, value, i) => sum + value * psi[i] * v[i], 0)));
    const mean = [];
    const sd = [];
    across.K.forEach((row, i) => {
      const A = multiply(inverse, row);
      mean.push(dot(A, y));
      const left = variance[i] - 2 * dot(A, across.Sigma[i]) + dot(A, multiply(Sigma, A));
      sd.push(Math.sqrt(Math.max(left, 0)));
    });
    return { mean, sd };
  }

  /* The law of a trained network (ntk) and the posterior of the NNGP, at the rows of `points`. */
  function posteriors(network, X, y, points) {
    const here = kernels(network, X, X);
    const across = kernels(network, points, X);
    const variance = points.map((x) => kernels(network, [x], [x]).nngp[0][0]);
    const law = (name) =>
      afterTraining({
        K: here[name],
        Sigma: here.nngp,
        across: { K: across[name], Sigma: across.nngp },
        variance,
        y,
      });
    return { ntk: law("ntk"), nngp: law("nngp") };
  }

  /* Features cos(kx), sin(kx), k = 1 … 10, each scaled by (1 + k²)^(−1/2). */
  const waves = (x) => {
    const k = Array.from({ length: 10 }, (_, i) => i + 1);
    const scale = (wave) => k.map((i) => wave(i * x) / Math.sqrt(1 + i * i));
    return [...scale(Math.cos), ...scale(Math.sin)];
  };

  /* Gradient flow on these features, taken apart: eigenvalues (largest first), the labels in each eigen-direction, and
     f_t(x) = K_x φ_t(K) y at the points of `grid` as a sum of parts, one for each direction. */
  function flow(x, y, grid) {
    const features = x.map(waves);
    const { s, U } = eigh(features.map((u) => features.map((v) => dot(u, v))));
    const kept = s.map((_, i) => i).filter((i) => s[i] > 1e-12 * s.at(-1)).reverse();
    const eigenvalues = kept.map((i) => s[i]);
    const labels = kept.map((i) => dot(column(U, i), y));
    const rows = grid.map((point) => multiply(features, waves(point)));
    const shapes = kept.map((i) => multiply(rows, column(U, i)));
    const parts = (t) => {
      const phi = clock(eigenvalues, t);
      return shapes.map((shape, i) => shape.map((value) => value * phi[i] * labels[i]));
    };
    return { eigenvalues, labels, parts };
  }

  const sum = (parts) => parts[0].map((_, j) => parts.reduce((total, part) => total + part[j], 0));

  window.featlearn = { eigh, kernels, afterTraining, posteriors, flow, sum };
})();
