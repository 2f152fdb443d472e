"use strict";
// The likelihoods, one entry per kind, as plurigp/likelihoods/families has them. Of one cell: y its coded numbers, mean
// and variance those of its functions, theta the column's parameters. An entry has
//   features(y, width)              what the encoder reads
//   logProb(theta, y, mean, variance, rule, grids)   log ∫ p(y|f) q(f) df
//   mean(theta, y, mean, variance, rule, grids)      E[y] in a list, or a probability per level
//   point(expected)                 the coded value that a gap is filled with
//   sample(uniform, theta, y, f)    a draw of y given its functions
const families = (() => {
  const {
    HALF_LOG_2PI,
    TINY,
    logGamma,
    logGammaStep,
    roundEven,
    safeExp,
    boundedExp,
    softplus,
    sigmoid,
    logAddExp,
    ndtr,
    logNdtr,
    ndtri,
    logBetween,
  } = special;
  const { expect, logExpect, expectedSoftmax } = quadrature;

  // --- noise and densities that several share ---

  const FLOOR = 0.01; // smallest noise sd, in units of the column's own
  const LOG_FLOOR = Math.log(FLOOR),
    LOG_2PI = 2 * HALF_LOG_2PI;
  const noiseVar = (theta) => FLOOR ** 2 + Math.exp(2 * theta.log_sd);
  const noiseSd = (theta) => Math.sqrt(noiseVar(theta)) * (theta.noise_scale ?? 1);
  const logNormal = (y, mean, variance) => -0.5 * (LOG_2PI + Math.log(variance) + (y - mean) ** 2 / variance);

  function logStudent(y, mean, variance, df) {
    const spread = df * variance;
    const kernel = ((df + 1) / 2) * Math.log1p((y - mean) ** 2 / spread);
    return logGammaStep(df / 2) - 0.5 * Math.log(Math.PI * spread) - kernel;
  }

  // A new cell's density: n cells tell the noise no better than a χ², so it is Student's t.
  function logPredictive(theta, y, mean, variance) {
    const total = noiseVar(theta) + variance;
    return "n_cells" in theta ? logStudent(y, mean, total, theta.n_cells) : logNormal(y, mean, total);
  }

  const first = (expected) => expected[0];
  const nearestWhole = (expected) => roundEven(expected[0]);
  const ownMean = (theta, y, mean) => [mean[0]];
  const value = (y) => [y[0]];

  // --- numbers ---

  const gaussian = {
    features: value,
    logProb: (theta, y, mean, variance) => logPredictive(theta, y[0], mean[0], variance[0]),
    mean: ownMean,
    point: first,
    sample: (uniform, theta, y, f) => f[0] + noiseSd(theta) * random.normal(uniform),
  };

  const logVar = (f) => 2 * LOG_FLOOR + softplus(2 * (f - LOG_FLOOR));
  const gaussian_hetero = {
    features: value,
    logProb(theta, y, mean, variance, rule) {
      const square = (y[0] - mean[0]) ** 2,
        logV = Math.log(variance[0]);
      const given = (f) => {
        const v = logAddExp(logV, logVar(f));
        return -0.5 * (LOG_2PI + v + square * Math.exp(-v));
      };
      return logExpect(given, mean[1], variance[1], rule);
    },
    mean: ownMean,
    point: first,
    sample: (uniform, theta, y, f) => f[0] + Math.hypot(FLOOR, boundedExp(f[1])) * random.normal(uniform),
  };

  const studentVar = (theta) => FLOOR ** 2 + Math.exp(2 * theta.log_scale),
    studentDf = (theta) => 1 + Math.exp(theta.log_df);
  const student_t = {
    features: value,
    logProb(theta, y, mean, variance, rule) {
      const own = studentVar(theta),
        df = studentDf(theta);
      return logExpect((f) => logStudent(y[0], f, own, df), mean[0], variance[0], rule);
    },
    mean: ownMean,
    point: first,
    sample(uniform, theta, y, f) {
      const df = studentDf(theta),
        t = random.normal(uniform) / Math.sqrt((2 * random.gamma(uniform, df / 2)) / df);
      return f[0] + Math.sqrt(studentVar(theta)) * t;
    },
  };

  const lognormal = {
    features: (y) => [Math.log(y[0])],
    logProb: (theta, y, mean, variance) => logPredictive(theta, Math.log(y[0]), mean[0], variance[0]) - Math.log(y[0]),
    mean: (theta, y, mean, variance) => [safeExp(mean[0] + variance[0] / 2 + noiseVar(theta) / 2)],
    point: first,
    sample: (uniform, theta, y, f) => boundedExp(f[0] + noiseSd(theta) * random.normal(uniform)),
  };

  // The log density of log y.
  function logGammaOfLog(theta, y, logY, f) {
    const shape = Math.exp(theta.log_shape);
    return shape * (theta.log_shape - f + logY - y * safeExp(-f)) - logGamma(shape);
  }
  const drawGamma = (uniform, theta, f) => {
    const shape = Math.exp(theta.log_shape);
    return Math.max((random.gamma(uniform, shape) * boundedExp(f)) / shape, TINY);
  };
  const gamma = {
    features: (y) => [Math.log(y[0])],
    logProb(theta, y, mean, variance, rule) {
      const logY = Math.log(y[0]);
      return logExpect((f) => logGammaOfLog(theta, y[0], logY, f) - logY, mean[0], variance[0], rule);
    },
    mean: (theta, y, mean, variance) => [safeExp(mean[0] + variance[0] / 2)],
    point: first,
    sample: (uniform, theta, y, f) => drawGamma(uniform, theta, f[0]),
  };

  // --- yes or no, and successes out of trials ---

  const bernoulliLogProb = (yes, mean, variance, rule) => logExpect((f) => yes * f - softplus(f), mean, variance, rule);
  const bernoulli = {
    features: value,
    logProb: (theta, y, mean, variance, rule) => bernoulliLogProb(y[0], mean[0], variance[0], rule),
    mean: (theta, y, mean, variance, rule) => [expect(sigmoid, mean[0], variance[0], rule)],
    point: nearestWhole,
    sample: (uniform, theta, y, f) => (uniform() < sigmoid(f[0]) ? 1 : 0),
  };

  const logChoose = (y) => logGamma(y[1] + 1) - logGamma(y[0] + 1) - logGamma(y[1] - y[0] + 1);
  const binomial = {
    features: (y) => [y[0] / Math.max(y[1], 1)],
    logProb: (theta, y, mean, variance, rule) =>
      logChoose(y) + logExpect((f) => y[0] * f - y[1] * softplus(f), mean[0], variance[0], rule),
    mean: (theta, y, mean, variance, rule) => [y[1] * expect(sigmoid, mean[0], variance[0], rule)],
    point: nearestWhole,
    sample: (uniform, theta, y, f) => random.binomial(uniform, Math.trunc(y[1]), sigmoid(f[0])),
  };

  const zero_lognormal = {
    features: (y) => [y[0] > 0 ? 1 : 0, y[0] > 0 ? Math.log(y[0]) : 0],
    logProb(theta, y, mean, variance, rule) {
      const there = bernoulliLogProb(y[0] > 0 ? 1 : 0, mean[0], variance[0], rule);
      return y[0] > 0 ? there + lognormal.logProb(theta, y, [mean[1]], [variance[1]]) - y[1] : there;
    },
    mean: (theta, y, mean, variance, rule) => [
      expect(sigmoid, mean[0], variance[0], rule) * lognormal.mean(theta, y, [mean[1]], [variance[1]])[0],
    ],
    point: first,
    sample: (uniform, theta, y, f) =>
      bernoulli.sample(uniform, theta, y, f) * lognormal.sample(uniform, theta, y, [f[1]]),
  };

  // --- proportions ---

  const EDGE = 1e-5;
  const offEdges = (share) => EDGE + (1 - 2 * EDGE) * share;
  function betaLogProb(theta, y, f) {
    const nu = Math.exp(theta.log_nu),
      a = nu * offEdges(ndtr(f)),
      b = nu * offEdges(ndtr(-f));
    return logGamma(nu) - logGamma(a) - logGamma(b) + (a - 1) * Math.log(y) + (b - 1) * Math.log1p(-y);
  }
  function drawBeta(uniform, theta, f) {
    const nu = Math.exp(theta.log_nu),
      drawn = random.beta(uniform, nu * offEdges(ndtr(f)), nu * offEdges(ndtr(-f)));
    return Math.min(Math.max(drawn, Number.EPSILON), 1 - Number.EPSILON);
  }
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);
  const beta = {
    features: (y) => [ndtri(clip(y[0], 1e-4, 1 - 1e-4))],
    logProb: (theta, y, mean, variance, rule) =>
      logExpect((f) => betaLogProb(theta, y[0], f), mean[0], variance[0], rule),
    mean: (theta, y, mean, variance, rule) => [expect((f) => offEdges(ndtr(f)), mean[0], variance[0], rule)],
    point: first,
    sample: (uniform, theta, y, f) => drawBeta(uniform, theta, f[0]),
  };

  const cutsOf = (theta, f) => [theta.low_cut - f, theta.low_cut + Math.exp(theta.log_gap) - f];
  const zero_one_beta = {
    features: (y) => [ndtri(clip(y[0], 1e-3, 1 - 1e-3)), (y[0] >= 1 ? 1 : 0) - (y[0] <= 0 ? 1 : 0)],
    logProb(theta, y, mean, variance, rule) {
      const given = (f) => {
        const [low, high] = cutsOf(theta, f);
        if (y[0] <= 0) return logNdtr(low);
        return y[0] >= 1 ? logNdtr(-high) : logBetween(low, high) + betaLogProb(theta, y[0], f) - y[1];
      };
      return logExpect(given, mean[0], variance[0], rule);
    },
    mean(theta, y, mean, variance, rule) {
      const given = (f) => {
        const [low, high] = cutsOf(theta, f);
        return ndtr(-high) + (ndtr(high) - ndtr(low)) * offEdges(ndtr(f));
      };
      return [expect(given, mean[0], variance[0], rule)];
    },
    point: first,
    sample(uniform, theta, y, f) {
      const [low, high] = cutsOf(theta, f[0]),
        noise = random.normal(uniform);
      return noise < low ? 0 : noise > high ? 1 : drawBeta(uniform, theta, f[0]);
    },
  };

  // --- levels ---

  const END = 1e3; // the outermost cut points, as good as infinite
  function cutPoints(theta) {
    const cuts = [-END, theta.first_cut];
    for (const gap of theta.log_gaps) cuts.push(cuts[cuts.length - 1] + Math.exp(gap));
    return [...cuts, END];
  }
  const ordinal = {
    features: value,
    logProb(theta, y, mean, variance) {
      const cuts = cutPoints(theta),
        spread = Math.sqrt(1 + variance[0]);
      return logBetween((cuts[y[0]] - mean[0]) / spread, (cuts[y[0] + 1] - mean[0]) / spread);
    },
    mean(theta, y, mean, variance) {
      const spread = Math.sqrt(1 + variance[0]),
        below = cutPoints(theta).map((cut) => ndtr((cut - mean[0]) / spread));
      return below.slice(1).map((p, k) => p - below[k]);
    },
    point(expected) {
      // the median level
      let below = 0,
        place = 0;
      for (const p of expected.slice(0, -1)) {
        below += p;
        place += below < 0.5 ? 1 : 0;
      }
      return place;
    },
    sample(uniform, theta, y, f) {
      const noisy = f[0] + random.normal(uniform);
      return cutPoints(theta)
        .slice(1, -1)
        .filter((cut) => noisy > cut).length;
    },
  };

  const categorical = {
    features: (y, width) => Array.from({ length: width }, (_, k) => (k === y[0] ? 1 : 0)),
    logProb: (theta, y, mean, variance, rule, grids) =>
      Math.log(Math.max(expectedSoftmax(mean, variance, rule, grids)[y[0]], 1.1754943508222875e-38)),
    mean: (theta, y, mean, variance, rule, grids) => expectedSoftmax(mean, variance, rule, grids),
    point: (expected) => expected.indexOf(Math.max(...expected)),
    sample(uniform, theta, y, f) {
      const noisy = Array.from(f, (value) => value - Math.log(-Math.log(uniform())));
      return noisy.indexOf(Math.max(...noisy));
    },
  };

  return {
    gaussian,
    gaussian_hetero,
    student_t,
    lognormal,
    gamma,
    zero_lognormal,
    bernoulli,
    binomial,
    beta,
    zero_one_beta,
    ordinal,
    categorical,
    parts: { first, nearestWhole, logNormal, noiseVar, noiseSd, logGammaOfLog, drawGamma },
  };
})();
