"use strict";
// Numbers of which some are known up to a limit (plurigp/likelihoods/families/censored.py, censored_gamma.py, weibull.py).
// A cell is (lower, upper, log unit); equal bounds are a value, open ends lie far out. Means and draws are those of a gap.
(() => {
  const { TINY, logGamma, safeExp, boundedExp, logBetween } = special;
  const { expect, logExpect } = quadrature;
  const { first, logNormal, noiseVar, noiseSd, logGammaOfLog, drawGamma } = families.parts;
  const OPEN = 1e9,
    SMALLEST = 1e-29,
    LARGEST = 1e29; // what counts as open, on the scale of f and of y

  // A cell of a positive column on the log scale.
  function logBounds(y) {
    const low = y[0] < SMALLEST ? -OPEN : Math.log(y[0]),
      high = y[1] > LARGEST ? OPEN : Math.log(y[1]);
    return [low, high, y[2] + (y[0] === y[1] ? Math.log(y[0]) : 0)];
  }

  // The value, limit or middle, and on which side of it the cell may lie.
  function boundFeature(y) {
    const lowOpen = y[0] <= -OPEN,
      highOpen = y[1] >= OPEN;
    if (lowOpen && highOpen) return [0, 0];
    return [((lowOpen ? y[1] : y[0]) + (highOpen ? y[0] : y[1])) / 2, (highOpen ? 1 : 0) - (lowOpen ? 1 : 0)];
  }
  const logBoundFeature = (y) => boundFeature(logBounds(y));

  function givenBounds(y, mean, variance) {
    if (y[0] === y[1]) return logNormal(y[0], mean, variance) - y[2];
    const sd = Math.sqrt(variance);
    return logBetween((y[0] - mean) / sd, (y[1] - mean) / sd);
  }

  families.censored_gaussian = {
    features: boundFeature,
    logProb: (theta, y, mean, variance) => givenBounds(y, mean[0], noiseVar(theta) + variance[0]),
    mean: (theta, y, mean) => [mean[0]],
    point: first,
    sample: (uniform, theta, y, f) => f[0] + noiseSd(theta) * random.normal(uniform),
  };

  families.censored_lognormal = {
    features: logBoundFeature,
    logProb: (theta, y, mean, variance) => givenBounds(logBounds(y), mean[0], noiseVar(theta) + variance[0]),
    mean: (theta, y, mean, variance) => [safeExp(mean[0] + (noiseVar(theta) + variance[0]) / 2)],
    point: first,
    sample: (uniform, theta, y, f) => boundedExp(f[0] + noiseSd(theta) * random.normal(uniform)),
  };

  // --- gamma: the density of log y between the bounds, integrated from its highest point to either side ---

  const NATS = 36,
    NEAR = 8; // what lies so far below the top is left out; the left side has two panels

  function panels(k, top, toLow, toHigh) {
    const q = NATS / k,
      eTop = safeExp(top);
    const left = Math.min(q + Math.sqrt(2 * q), q / Math.max(1 - eTop, 1e-6));
    const right = Math.min(Math.sqrt((2 * q) / eTop), Math.log1p((2 * q) / eTop) + 1, q / Math.max(eTop - 1, 1e-6));
    const start = Math.max(toLow, -left),
      near = Math.max(start, -NEAR);
    return [
      [start, near],
      [near, 0],
      [0, Math.min(toHigh, right)],
    ];
  }

  // log P(low < log y < high) for a gamma with mean e^f.
  function logGammaMass(logK, low, high, f, legendre) {
    const isOpen = low <= -OPEN,
      k = Math.exp(logK);
    if (isOpen && high - f >= OPEN / 2) return 0;
    const hazard = isOpen ? 0 : safeExp(logK + Math.max(low, -1e3) - f);
    low -= f;
    high -= f;
    const top = Math.min(Math.max(0, low), high),
      eTop = safeExp(top);
    const toLow = low > 0 ? 0 : low - Math.min(high, 0),
      toHigh = high < 0 ? 0 : high - Math.max(low, 0);
    const base = isOpen ? eTop : safeExp(low) * Math.expm1(-toLow); // e^top − e^low
    let mass = 0;
    for (const [start, end] of panels(k, top, toLow, toHigh)) {
      const half = (end - start) / 2;
      for (let j = 0; j < legendre.points.length; j++) {
        const step = start + half * (1 + legendre.points[j]);
        mass += half * legendre.weights[j] * Math.exp(k * (step - eTop * Math.expm1(step)));
      }
    }
    return Math.log(Math.max(mass, TINY)) + k * (top - base + logK) - logGamma(k) - hazard;
  }

  families.censored_gamma = {
    features: logBoundFeature,
    logProb(theta, y, mean, variance, rule, grids) {
      const [low, high, unit] = logBounds(y),
        exact = y[0] === y[1];
      const given = exact
        ? (f) => logGammaOfLog(theta, Math.exp(low), low, f) - unit
        : (f) => logGammaMass(theta.log_shape, low, high, f, grids.legendre);
      return logExpect(given, mean[0], variance[0], rule);
    },
    mean: (theta, y, mean, variance, rule) => [expect((f) => Math.exp(f), mean[0], variance[0], rule.short)],
    point: first,
    sample: (uniform, theta, y, f) => drawGamma(uniform, theta, f[0]),
  };

  // --- times to an event: the survivor is exp(−(y e^{−f})^k) ---

  const hazardAt = (k, logTime, f) => safeExp(k * (logTime - f), 80);

  // log P(y < high | y > low), both as logs; 0 where `high` is open.
  function logEventBefore(k, low, high, f) {
    if (high >= OPEN) return 0;
    low = Math.max(low, -1e3);
    const rise = k * (high - low);
    const more = rise < 1 ? hazardAt(k, low, f) * Math.expm1(rise) : hazardAt(k, high, f) - hazardAt(k, low, f);
    return Math.log(-Math.expm1(-Math.max(more, TINY)));
  }

  families.weibull = {
    features: logBoundFeature,
    logProb(theta, y, mean, variance, rule) {
      const k = Math.exp(theta.log_shape),
        [low, high, unit] = logBounds(y);
      const given =
        y[0] === y[1]
          ? (f) => theta.log_shape + k * (low - f) - hazardAt(k, low, f) - unit
          : (f) => logEventBefore(k, low, high, f) - (low > -OPEN ? hazardAt(k, Math.max(low, -1e3), f) : 0);
      return logExpect(given, mean[0], variance[0], rule);
    },
    mean(theta, y, mean, variance, rule) {
      const factor = Math.exp(logGamma(1 + Math.exp(-theta.log_shape)));
      return [expect((f) => Math.exp(f) * factor, mean[0], variance[0], rule.short)];
    },
    point: first,
    sample: (uniform, theta, y, f) =>
      Math.max(boundedExp(f[0]) * Math.pow(-Math.log(uniform()), Math.exp(-theta.log_shape)), TINY),
  };
})();
