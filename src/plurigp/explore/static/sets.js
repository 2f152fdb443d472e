"use strict";
// Sets of positions: what the model says of their columns, and how two of them differ.
const sets = (() => {
  const MOST = 240; // positions of a set that are looked at
  const DRAWS_EACH = 2; // of every cell at each of them

  // At most so many of a list, evenly.
  function thinned(list, most = MOST) {
    const step = Math.max(list.length / most, 1);
    return Array.from({ length: Math.min(list.length, most) }, (_, i) => list[Math.floor(i * step)]);
  }

  // Positions drawn from the prior, for a map without rows.
  function priorPositions(model, n) {
    const uniform = random.generator(7),
      { Q, prior } = model,
      K = prior ? prior.log_weights.length : 1;
    return Array.from({ length: n }, (_, i) => {
      const z = Float64Array.from({ length: Q }, () => random.normal(uniform));
      if (!prior) return z;
      let level = (i + 0.5) / n,
        k = 0;
      for (; k < K - 1 && level > Math.exp(prior.log_weights[k]); k++) level -= Math.exp(prior.log_weights[k]);
      return z.map((_, a) => {
        let sum = prior.means[k * Q + a];
        for (let b = a; b < Q; b++) sum += prior.roots[k * Q * Q + a * Q + b] * z[b];
        return sum;
      });
    });
  }

  // Every column over a set of positions: draws and their moments, or mean probabilities of levels.
  function summarise(model, positions) {
    const shown = thinned(positions),
      row = coding.emptyRow(model),
      uniform = random.generator(11);
    const found = model.columns.map((column) =>
      column.levels ? { probabilities: column.levels.map(() => 0) } : { sorted: [] },
    );
    for (const x of shown) {
      const f = trained.moments(model, x);
      model.columns.forEach((column, d) => {
        if (column.levels) {
          answers.meanAt(model, column, row.values[d], f).forEach((p, k) => {
            found[d].probabilities[k] += p / shown.length;
          });
        } else {
          for (let i = 0; i < DRAWS_EACH; i++) {
            found[d].sorted.push(coding.decode(column, answers.drawCell(column, row.values[d], f, uniform)));
          }
        }
      });
    }
    return found.map((part, d) => (part.sorted ? withMoments(model.columns[d], part.sorted) : part));
  }

  // Mean and sd, of logarithms for columns of positive numbers, where a standardised difference is taken.
  function withMoments(column, draws) {
    const sorted = Float64Array.from(draws).sort(),
      scale = column.positive ? Math.log : (v) => v;
    const mean = average(sorted, (v) => v),
      centre = average(sorted, scale);
    const sd = Math.sqrt(average(sorted, (v) => (scale(v) - centre) ** 2));
    return { sorted, mean, centre, sd: Math.max(sd, 1e-12) };
  }

  function average(values, of) {
    let sum = 0;
    for (const value of values) sum += of(value);
    return sum / Math.max(values.length, 1);
  }

  // (a − b) / pooled sd; for levels that of the level which differs most, with its place.
  function difference(a, b) {
    if (a.sorted) return { size: (a.centre - b.centre) / Math.sqrt((a.sd ** 2 + b.sd ** 2) / 2), level: null };
    let best = { size: 0, level: a.probabilities.length - 1 };
    a.probabilities.forEach((p, level) => {
      const q = b.probabilities[level],
        size = (p - q) / Math.sqrt(Math.max((p * (1 - p) + q * (1 - q)) / 2, 1e-12));
      if (Math.abs(size) > Math.abs(best.size)) best = { size, level };
    });
    if (a.probabilities.length === 2)
      return { size: Math.sign(a.probabilities[1] - b.probabilities[1]) * Math.abs(best.size), level: 1 };
    return best;
  }

  // How a value expected at one place differs from the average of a set, in sds of that set.
  function fromAverage(column, gap, everyone) {
    if (gap.probabilities) return difference({ probabilities: gap.probabilities }, everyone);
    const scale = column.positive ? (v) => Math.log(Math.max(v, Number.MIN_VALUE)) : (v) => v;
    return { size: (average(gap.sorted, scale) - everyone.centre) / everyone.sd, level: null };
  }

  return { summarise, difference, fromAverage, priorPositions, average };
})();
