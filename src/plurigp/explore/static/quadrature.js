"use strict";
// Quadrature of one function, and E[softmax(f)] of independent normal functions (docs/mathematics.md, "Softmax").
const quadrature = (() => {
  const { logSumExp, TINY } = special;

  // E[g(f)] for f ~ N(mean, var): Σ_j w_j g(mean + sd t_j).
  function expect(g, mean, variance, rule) {
    const sd = Math.sqrt(variance);
    let total = 0;
    for (let j = 0; j < rule.points.length; j++) total += rule.weights[j] * g(mean + sd * rule.points[j]);
    return total;
  }

  // log E[exp(logG(f))], without overflow.
  function logExpect(logG, mean, variance, rule) {
    const sd = Math.sqrt(variance),
      terms = new Float64Array(rule.points.length);
    for (let j = 0; j < terms.length; j++) terms[j] = Math.log(rule.weights[j]) + logG(mean + sd * rule.points[j]);
    return logSumExp(terms);
  }

  const LOWER_END = 5.5; // how far below the step of the outermost node the trapezoid begins
  const NARROW_VAR = 1; // up to this variance the coarse grid is as accurate as the fine one

  // E[softmax(f)] from 1/S = ∫ e^{−tS} dt; `grids` holds the rules `coarse` and `fine` and their numbers of points.
  function expectedSoftmax(mean, variance, rule, grids) {
    const widest = Math.max(...variance);
    const grid = widest > NARROW_VAR ? grids.fine : grids.coarse;
    if (!rule.adaptive) return onGrid(mean, variance, widest, rule, grid.n_points);
    return onGrid(mean, variance, widest, grid.rule, grid.n_points);
  }

  function onGrid(mean, variance, widest, rule, nPoints) {
    const K = mean.length,
      J = rule.points.length,
      shift = widest / 2;
    const tops = mean.map((a, k) => a + variance[k] / 2),
      c = logSumExp(tops);
    const outermost = Math.max(rule.points[J - 1] * Math.sqrt(widest) - shift, 0);
    const start = -(Math.min(shift, outermost) + LOWER_END);
    const end = shift + 3.5 * Math.sqrt(widest) + (c - Math.max(...tops)) + 2;
    const step = (end - start) / (nPoints - 1),
      growth = new Float64Array(K * J);
    for (let k = 0; k < K; k++) {
      const sd = Math.sqrt(variance[k]),
        centre = mean[k] - c + shift;
      for (let j = 0; j < J; j++) growth[k * J + j] = Math.exp(Math.min(centre + sd * rule.points[j], 60));
    }
    const total = new Float64Array(K),
      slope = new Float64Array(K),
      factor = new Float64Array(K);
    for (let i = 0; i < nPoints; i++) {
      const t = Math.exp(start + i * step - shift);
      let whole = 1;
      for (let k = 0; k < K; k++) {
        let kept = 0,
          moved = 0;
        for (let j = 0; j < J; j++) {
          const scaled = Math.min(t * growth[k * J + j], 1e30),
            part = rule.weights[j] * Math.exp(-scaled);
          kept += part;
          moved += part * scaled;
        }
        factor[k] = Math.max(kept, TINY);
        slope[k] = moved;
        whole *= factor[k];
      }
      for (let k = 0; k < K; k++) total[k] += (slope[k] * whole) / factor[k];
    }
    return normalised(total, step, tops, c);
  }

  // The tail below the start of the trapezoid has the shares of softmax(mean + var / 2).
  function normalised(total, step, tops, c) {
    const found = total.map((part) => part * step),
      tail = 1 - found.reduce((a, b) => a + b, 0);
    const shares = Array.from(found, (part, k) => Math.max(part + tail * Math.exp(tops[k] - c), 0));
    const sum = shares.reduce((a, b) => a + b, 0);
    return shares.map((share) => share / sum);
  }

  return { expect, logExpect, expectedSoftmax };
})();
