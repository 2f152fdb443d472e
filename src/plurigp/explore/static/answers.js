"use strict";
// What the model is asked about one row, as plurigp/answers has it: draws of x weighted by the row's observed cells, expected
// values, intervals, group probabilities; and what each further measurement would tell.
const answers = (() => {
  const { logSumExp } = special;
  const MIN_VAR = 1e-10; // of a function, where its square root is taken
  const MOST_VARIANCE = 0.95; // of a position, as in findings/mixture.py
  const NEGLIGIBLE = 1e-12; // a draw of this weight changes no answer

  // --- draws of x: most from q(x), the last ones from the prior; r is the mixture of both ---

  // x = mean + diag(stretch) base · noise.
  function positionAt(q, noise, at, Q) {
    return Float64Array.from({ length: Q }, (_, i) => {
      let sum = 0;
      for (let j = i; j < Q; j++) sum += q.base[i * Q + j] * noise[at + j];
      return q.mean[i] + q.stretch[i] * sum;
    });
  }

  // log N(x; mean, root rootᵀ) without the constant of 2π, by back substitution.
  function logNormalDensity(q, x, Q) {
    const u = new Float64Array(Q);
    let total = -trained.logDet(q, Q);
    for (let i = Q - 1; i >= 0; i--) {
      let sum = (x[i] - q.mean[i]) / q.stretch[i];
      for (let j = i + 1; j < Q; j++) sum -= q.base[i * Q + j] * u[j];
      u[i] = sum / q.base[i * Q + i];
      total -= 0.5 * u[i] * u[i];
    }
    return total;
  }

  // The prior's groups as normals of the same form as q(x); N(0, I) without groups.
  function priorGroups(model) {
    const { prior, Q } = model,
      K = prior ? prior.log_weights.length : 1,
      ones = new Float64Array(Q).fill(1);
    const eye = Float64Array.from({ length: Q * Q }, (_, i) => (i % (Q + 1) === 0 ? 1 : 0));
    return Array.from({ length: K }, (_, k) => ({
      logWeight: prior ? prior.log_weights[k] : 0,
      mean: prior ? prior.means.subarray(k * Q, k * Q + Q) : new Float64Array(Q),
      stretch: ones,
      base: prior ? prior.roots.subarray(k * Q * Q, (k + 1) * Q * Q) : eye,
    }));
  }

  // Draws of x with log p(x) − log r(x) of each; groups take turns among the draws from the prior.
  function propose(model, q, noise) {
    const { Q } = model,
      S = noise.length / Q,
      groups = priorGroups(model),
      K = groups.length;
    const nPrior = Math.min(Math.max(model.prior_draws, K), S - 1),
      counts = new Array(K).fill(0);
    const groupOf = (s) => (S - 1 - s) % K;
    for (let s = S - nPrior; s < S; s++) counts[groupOf(s)] += 1;
    return Array.from({ length: S }, (_, s) => {
      const x = positionAt(s >= S - nPrior ? groups[groupOf(s)] : q, noise, s * Q, Q);
      const byGroup = groups.map((group) => logNormalDensity(group, x, Q));
      const drawn = [Math.log((S - nPrior) / S) + logNormalDensity(q, x, Q)];
      byGroup.forEach((log, k) => {
        if (counts[k]) drawn.push(Math.log(counts[k] / S) + log);
      });
      const prior = byGroup.map((log, k) => groups[k].logWeight + log);
      return { x, prior, logRatio: logSumExp(prior) - logSumExp(drawn) };
    });
  }

  const own = (column, part) => part.subarray(column.functions[0], column.functions[1]);

  // Draws with their weights w_s ∝ p(x_s) / r(x_s) Π_{d seen} p(y_d|x_s) and the moments of f behind them.
  function weigh(model, row, q, noise) {
    const draws = propose(model, q, noise);
    for (const draw of draws) {
      draw.f = trained.moments(model, draw.x);
      draw.log = draw.logRatio;
      model.columns.forEach((column, d) => {
        if (!row.seen[d]) return;
        const { mean, variance } = cellMoments(column, draw.f);
        draw.log += column.family.logProb(
          column.theta,
          row.values[d],
          mean,
          variance,
          model.rules[column.rule],
          model.grids,
        );
      });
    }
    const total = logSumExp(draws.map((draw) => draw.log));
    for (const draw of draws) draw.weight = Math.exp(draw.log - total);
    return draws;
  }

  function cellMoments(column, f) {
    const [start, end] = column.functions,
      mean = [],
      variance = [];
    for (let p = start; p < end; p++) {
      mean.push(f.mean[p]);
      variance.push(Math.max(f.variance[p], MIN_VAR));
    }
    return { mean, variance };
  }

  // --- expected values and probabilities of levels ---

  function meanAt(model, column, y, f) {
    const { mean, variance } = cellMoments(column, f);
    const found = column.family.mean(column.theta, y, mean, variance, model.rules[column.rule], model.grids);
    return column.levels && found.length === 1 ? [1 - found[0], found[0]] : found;
  }

  // Σ_s w_s E[y|x_s] of one column: one number, or a probability per level.
  function expected(model, row, draws, d) {
    let total = null;
    for (const draw of draws) {
      if (draw.weight < NEGLIGIBLE) continue;
      const found = meanAt(model, model.columns[d], row.values[d], draw.f);
      total = total ? total.map((sum, k) => sum + draw.weight * found[k]) : found.map((part) => draw.weight * part);
    }
    return total;
  }

  // The coded value that a gap is filled with.
  function point(column, found) {
    const plain =
      column.levels && found.length === 2 && column.functions[1] - column.functions[0] === 1 && column.yes_or_no;
    return column.family.point(plain ? [found[1]] : found);
  }

  // --- draws of y, and quantiles recalibrated by the column's PIT map ---

  // A draw of one cell at the moments of its functions; columns whose noise is not certain draw it too.
  function drawCell(column, y, f, uniform) {
    let theta = column.theta,
      scale = 1;
    const mean = own(column, f.mean),
      variance = own(column, f.variance),
      last = mean.length - 1;
    if ("n_cells" in theta) {
      scale = Math.sqrt(theta.n_cells / (2 * random.gamma(uniform, theta.n_cells / 2)));
      theta = { ...theta, noise_scale: scale };
    }
    const values = Array.from(
      mean,
      (m, h) => m + (h === last ? scale : 1) * Math.sqrt(variance[h]) * random.normal(uniform),
    );
    return column.family.sample(uniform, theta, y, values);
  }

  // Raw draws of a gap, sorted; x is taken by the weights, evenly, and the same random numbers serve every call.
  function drawGap(model, row, draws, d, n) {
    const column = model.columns[d],
      uniform = random.generator(1 + d),
      out = new Float64Array(n);
    let s = 0,
      reached = draws[0].weight;
    for (let i = 0; i < n; i++) {
      const level = (i + uniform()) / n;
      while (level > reached && s < draws.length - 1) reached += draws[++s].weight;
      out[i] = coding.decode(column, drawCell(column, row.values[d], draws[s].f, uniform));
    }
    return out.sort();
  }

  // G⁻¹(p): the level of the draws' own quantile below which a share p of cells lies.
  function calibratedLevel(column, knots, p) {
    const G = column.pit_map;
    if (!G) return p;
    if (p <= G[0]) return knots[0];
    for (let k = 1; k < G.length; k++) {
      if (p < G[k]) return knots[k - 1] + ((knots[k] - knots[k - 1]) * (p - G[k - 1])) / (G[k] - G[k - 1]);
    }
    return knots[knots.length - 1];
  }

  // Weibull's positions: n draws make n + 1 equal gaps.
  function quantile(sorted, p) {
    const n = sorted.length,
      place = Math.min(Math.max(p * (n + 1) - 1, 0), n - 1),
      low = Math.floor(place);
    return sorted[low] + (place - low) * (sorted[Math.min(low + 1, n - 1)] - sorted[low]);
  }

  // Calibrated quantiles of sorted draws.
  const quantiles = (model, column, sorted, levels) =>
    levels.map((p) => quantile(sorted, calibratedLevel(column, model.knots, p)));

  // --- groups ---

  // Subtypes of a study: its mixture takes the place of the prior N(0, I) in q(x) = N(mean, sd²); the paper's is one of
  // means alone. The last share is that of the outliers.
  function memberships(mixture, mean, sd) {
    const Q = mean.length,
      C = mixture.weights.length,
      K = mixture.names.length;
    const variance = Array.from(sd, (s) => (mixture.by_means ? 0 : Math.min(s * s, MOST_VARIANCE)));
    const logs = Array.from({ length: C }, (_, c) => {
      const wide = mixture.covariances.slice(c * Q * Q, (c + 1) * Q * Q);
      for (let q = 0; q < Q; q++) wide[q * Q + q] += variance[q] / (1 - variance[q]);
      const W = trained.inverseRoot(wide, Q);
      let log = Math.log(mixture.weights[c]) - 0.5 * Q * Math.log(2 * Math.PI);
      for (let i = 0; i < Q; i++) {
        let u = 0;
        for (let j = 0; j <= i; j++) u += W[i * Q + j] * (mean[j] / (1 - variance[j]) - mixture.means[c * Q + j]);
        log += Math.log(W[i * Q + i]) - 0.5 * u * u;
      }
      return log;
    });
    const total = logSumExp(logs),
      shares = new Array(K + 1).fill(0);
    logs.forEach((log, c) => {
      shares[mixture.subtype[c] === 0 ? K : mixture.subtype[c] - 1] += Math.exp(log - total);
    });
    return shares;
  }

  // Groups of the prior: Σ_s w_s π_k N_k(x_s) / p(x_s).
  function priorMemberships(draws) {
    const shares = new Array(draws[0].prior.length).fill(0);
    for (const draw of draws) {
      const total = logSumExp(draw.prior);
      draw.prior.forEach((log, k) => {
        shares[k] += draw.weight * Math.exp(log - total);
      });
    }
    return shares;
  }

  // The same at a position that is known.
  function priorShares(model, x) {
    const logs = priorGroups(model).map((group) => group.logWeight + logNormalDensity(group, x, model.Q)),
      total = logSumExp(logs);
    return logs.map((log) => Math.exp(log - total));
  }

  // --- a row placed ---

  const LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95];

  // Position, groups and, for every gap, expected value, quantiles and levels. Raw units but for `probabilities`.
  function place(model, row, nDraws = model.n_gap_draws) {
    const q = trained.encode(model, row),
      few = weigh(model, row, q, model.noise.values),
      many = weigh(model, row, q, model.noise.gaps);
    const groups = model.groups ? memberships(model.groups, q.mean, q.sd) : model.prior ? priorMemberships(many) : [];
    const gaps = model.columns.map((column, d) => (row.seen[d] ? null : describe(model, row, few, many, d, nDraws)));
    const effective = 1 / many.reduce((sum, draw) => sum + draw.weight ** 2, 0);
    return { q, groups, gaps, draws: many, effective };
  }

  function describe(model, row, few, many, d, nDraws) {
    const column = model.columns[d],
      found = expected(model, row, few, d),
      filled = point(column, found);
    if (column.levels) return { probabilities: found, point: filled };
    const sorted = drawGap(model, row, many, d, nDraws);
    return {
      mean: coding.decodeExactly(column, found[0]),
      point: coding.decode(column, filled),
      sorted,
      quantiles: quantiles(model, column, sorted, LEVELS),
    };
  }

  // The cells at one position: what a patient there would look like.
  function decode(model, x, nDraws = model.n_gap_draws) {
    const row = coding.emptyRow(model),
      draw = { x, weight: 1, f: trained.moments(model, x) };
    return model.columns.map((column, d) => describe(model, row, [draw], [draw], d, nDraws));
  }

  // --- the next measurement ---

  const TRIED_VALUES = 7,
    TRIED_LEVELS = 8;

  // For every gap: by how much knowing it would shrink the sd of the position on average, as a share of now, from
  // E[log det root of q(x | cells, y_d)], y_d by its own predictive distribution.
  function information(model, row, placed, columns) {
    const { Q } = model,
      now = trained.logDet(placed.q, Q);
    return columns.map((d) => {
      let after = 0,
        weight = 0;
      for (const [value, share] of possible(model, row, placed.gaps[d], d)) {
        const known = { values: [...row.values], seen: [...row.seen] };
        known.values[d] = value;
        known.seen[d] = true;
        after += share * trained.logDet(trained.encode(model, known), Q);
        weight += share;
      }
      return { d, gain: weight > 0 ? 1 - Math.exp((after / weight - now) / Q) : 0 };
    });
  }

  // Coded values that a gap may turn out to have, and how likely each is.
  function possible(model, row, gap, d) {
    const column = model.columns[d];
    if (column.levels) {
      const ranked = gap.probabilities.map((p, code) => [[code], p]).sort((a, b) => b[1] - a[1]);
      return ranked.slice(0, TRIED_LEVELS);
    }
    return Array.from({ length: TRIED_VALUES }, (_, i) => {
      const raw = quantile(gap.sorted, (i + 0.5) / TRIED_VALUES);
      return [coding.code(column, coding.raw(column, raw, row.values[d])), 1 / TRIED_VALUES];
    });
  }

  return { LEVELS, weigh, place, decode, drawCell, meanAt, quantile, quantiles, memberships, priorShares, information };
})();
