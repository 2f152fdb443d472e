"use strict";
// Counts (plurigp/likelihoods/families/counts.py): Poisson, and the families with more spread or more zeros.
(() => {
  const { HALF_LOG_2PI, logFactorialRest, expExcess, softplus, sigmoid, logAddExp, ndtr, logNdtr } = special;
  const { logExpect } = quadrature;
  const { nearestWhole } = families.parts;

  const LOG_LARGEST = 41,
    SLIP = 1e-6; // of a rate; share of counts that are slips
  const ceiling = (theta) => theta.log_ceiling ?? LOG_LARGEST;
  const drawPoisson = (uniform, theta, f) => random.poisson(uniform, Math.exp(Math.min(f, ceiling(theta))));

  // E[e^g] for g = min(f, T), f ~ N(mean, variance).
  function meanRate(theta, mean, variance) {
    const top = ceiling(theta),
      sd = Math.sqrt(variance),
      d = (mean - top) / sd;
    const tail = Math.max(Math.exp((-d * d) / 2 - HALF_LOG_2PI) - Math.abs(d) * ndtr(-Math.abs(d)), 0);
    const low = Math.min(mean, top) - sd * tail;
    const step = mean - low + variance / 2 + logNdtr(-d - sd),
      near = Math.min(step, 1);
    const rest =
      Math.exp(low) * Math.expm1(near) + Math.exp(low + step) - Math.exp(low + near) + Math.exp(top) * ndtr(d);
    return Math.exp(low) + Math.max(rest, 0);
  }

  function logPoisson(y, logRate) {
    const deviance = y > 0 ? y * expExcess(logRate - Math.log(y)) : Math.exp(logRate);
    return -deviance - logFactorialRest(y);
  }

  // log((1 − SLIP) p(y) + SLIP q(y)) with q(y) = m / (y (y + 1)) for counts y ≥ m above the ceiling.
  function withSlips(theta, y, logProb) {
    if (!("log_ceiling" in theta)) return logProb;
    const start = Math.floor(Math.exp(theta.log_ceiling)) + 1,
      counted = Math.log1p(-SLIP) + logProb;
    if (y < start) return counted;
    return logAddExp(counted, Math.log(SLIP) + Math.log(start) - Math.log(y) - Math.log(y + 1));
  }

  // A family of counts from its log p(y|f) and what its mean is to the rate.
  const counts = (given, factor, sample) => ({
    features: (y) => [Math.log1p(y[0])],
    logProb: (theta, y, mean, variance, rule) =>
      logExpect(
        (f) => withSlips(theta, y[0], given(theta, y[0], Math.min(f, ceiling(theta)))),
        mean[0],
        variance[0],
        rule,
      ),
    mean: (theta, y, mean, variance) => [factor(theta) * meanRate(theta, mean[0], variance[0])],
    point: nearestWhole,
    sample: (uniform, theta, y, f) => sample(uniform, theta, f[0]),
  });

  const poisson = counts(
    (theta, y, logRate) => logPoisson(y, logRate),
    () => 1,
    drawPoisson,
  );

  // The saturated log p(y) less the deviance (families/counts.py says why in this form).
  function logNegativeBinomial(theta, y, logRate) {
    const logR = theta.log_r,
      r = Math.exp(logR),
      sign = y < r ? 1 : -1,
      logY = Math.log(y > 0 ? y : 1);
    const lesser = Math.min(y, r),
      larger = Math.max(y, r),
      t = sign * (logRate - logY);
    const tilted = softplus(sign * (logY - logR) + t) - (lesser / (y + r)) * t;
    const deviance = (y + r) * (tilted - Math.log1p(lesser / larger));
    const saturated = logFactorialRest(y + r) - logFactorialRest(r) - logFactorialRest(y) - Math.log1p(y / r);
    return saturated - Math.max(deviance, 0);
  }
  const negative_binomial = counts(
    logNegativeBinomial,
    () => 1,
    (uniform, theta, f) => {
      const r = Math.exp(theta.log_r);
      return random.poisson(uniform, (random.gamma(uniform, r) * Math.exp(Math.min(f, ceiling(theta)))) / r);
    },
  );

  function logZeroInflated(theta, y, logRate) {
    const some = -softplus(theta.logit_zero);
    return y === 0 ? logAddExp(-softplus(-theta.logit_zero), some - Math.exp(logRate)) : logPoisson(y, logRate) + some;
  }
  const zero_inflated_poisson = counts(
    logZeroInflated,
    (theta) => sigmoid(-theta.logit_zero),
    (uniform, theta, f) => (uniform() < sigmoid(theta.logit_zero) ? 0 : drawPoisson(uniform, theta, f)),
  );

  Object.assign(families, { poisson, negative_binomial, zero_inflated_poisson });
})();
