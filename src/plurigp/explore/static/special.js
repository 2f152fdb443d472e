"use strict";
// Special functions in double precision, the same forms as plurigp/likelihoods/special.py.
const special = (() => {
  const HALF_LOG_2PI = 0.9189385332046727;
  const TINY = 2.2250738585072014e-308; // the smallest normal number

  // Σ_n c_n x^n by Horner's rule.
  function polynomial(coefficients, x) {
    let total = 0;
    for (let n = coefficients.length - 1; n >= 0; n--) total = total * x + coefficients[n];
    return total;
  }

  // --- log Γ and its kin ---

  const SHIFT = 8; // from here on Stirling's series is exact to rounding
  const STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360];
  const STEP_SERIES = [-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224];

  function logGamma(x) {
    let product = 1,
      z = x;
    for (; z < SHIFT; z++) product *= z;
    return (z - 0.5) * Math.log(z) - z + HALF_LOG_2PI + polynomial(STIRLING, 1 / (z * z)) / z - Math.log(product);
  }

  // log Γ(x + ½) − log Γ(x), without the cancellation that two large logarithms suffer.
  function logGammaStep(x) {
    let below = 1;
    for (let k = 0; k < 4; k++) below *= (x + k) / (x + k + 0.5);
    const z = x + 4;
    return 0.5 * Math.log(z) + polynomial(STEP_SERIES, 1 / (z * z)) / z + Math.log(below);
  }

  // log x! − x log x + x for x ≥ 0.
  function logFactorialRest(x) {
    if (x < SHIFT) return logGamma(x + 1) - (x > 0 ? x * Math.log(x) : 0) + x;
    return HALF_LOG_2PI + 0.5 * Math.log(x) + polynomial(STIRLING, 1 / (x * x)) / x;
  }

  // Halves to even, as NumPy rounds.
  const roundEven = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

  // --- exponentials ---

  // e^x, continued by its tangent above `top`.
  function safeExp(x, top = 30) {
    const low = Math.min(x, top);
    return Math.exp(low) * (1 + x - low);
  }

  const boundedExp = (x) => Math.exp(Math.min(x, 30));

  // e^x − 1 − x: near zero expm1(x) − x cancels.
  function expExcess(x) {
    if (Math.abs(x) >= 0.5) return Math.expm1(x) - x;
    let series = 1;
    for (let n = 16; n > 2; n--) series = 1 + (x / n) * series;
    return (x * x * series) / 2;
  }

  const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : 1 - 1 / (1 + Math.exp(x)));

  function logAddExp(a, b) {
    const top = Math.max(a, b);
    return top === -Infinity ? top : top + Math.log1p(Math.exp(-Math.abs(a - b)));
  }

  function logSumExp(terms) {
    let top = -Infinity,
      sum = 0;
    for (const term of terms) top = Math.max(top, term);
    if (!Number.isFinite(top)) return top;
    for (const term of terms) sum += Math.exp(term - top);
    return top + Math.log(sum);
  }

  // --- Φ, log Φ, its inverse and the mass between two bounds ---

  // (1 + 2t) e^{t²} erfc(t) as a Chebyshev series in u = (t − BEND) / (t + BEND), t ≥ 0: relative error 5e-15.
  const BEND = 3.75;
  const ERFC_SERIES = [
    1.1775789345674021, -0.004590054580646413, -0.08424913336651788, 0.059209939998191956, -0.02665866843530574,
    0.009074997670705354, -0.002413163540417591, 0.0004907758365259076, -6.916973302496576e-5, 4.139027986167327e-6,
    7.740383066702188e-7, -2.1886401041933243e-7, 1.0764999475956158e-8, 4.521959917801631e-9, -7.754399831738808e-10,
    -6.318081366535928e-11, 2.868801141192241e-11, 1.946353073900394e-13, -9.653729764229306e-13, 3.254904088445587e-14,
    3.354249655606115e-14,
  ];

  // e^{t²} erfc(t) for t ≥ 0, by Clenshaw's recurrence.
  function scaledErfc(t) {
    const u = (t - BEND) / (t + BEND);
    let b1 = 0,
      b2 = 0;
    for (let n = ERFC_SERIES.length - 1; n > 0; n--) {
      const next = 2 * u * b1 - b2 + ERFC_SERIES[n];
      b2 = b1;
      b1 = next;
    }
    return (u * b1 - b2 + ERFC_SERIES[0]) / (1 + 2 * t);
  }

  // Φ(−t) for t ≥ 0.
  const beyond = (t) => 0.5 * scaledErfc(t * Math.SQRT1_2) * Math.exp((-t * t) / 2);
  const ndtr = (x) => (x > 0 ? 1 - beyond(x) : beyond(-x));
  const logDensity = (x) => (-x * x) / 2 - HALF_LOG_2PI;
  // Φ(−t) / φ(t) for t ≥ 0, Mills' ratio.
  const mills = (t) => Math.sqrt(Math.PI / 2) * scaledErfc(t * Math.SQRT1_2);

  function logNdtr(x) {
    return x > 0 ? Math.log1p(-beyond(x)) : logDensity(x) + Math.log(mills(-x));
  }

  // Φ⁻¹(p): a start from the tail's expansion, then Newton's steps on log Φ, on the side where p is small.
  function ndtri(p) {
    if (p > 0.5) return -ndtri(1 - p);
    if (p <= 0) return -Infinity;
    const target = Math.log(p);
    let x = p < 0.1 ? -Math.sqrt(Math.max(-2 * target - Math.log(-2 * target * 2 * Math.PI), 1)) : (p - 0.5) * 2.6;
    for (let step = 0; step < 12; step++) {
      const change = (logNdtr(x) - target) * mills(-x); // the slope of log Φ is 1 / R
      x -= change;
      if (Math.abs(change) < 1e-15 * (1 + Math.abs(x))) break;
    }
    return x;
  }

  const TAIL = 8,
    NARROW = 0.1;

  // log(Φ(high) − Φ(low)) for low < high, on the side where Φ is small: nothing cancels.
  function logBetween(low, high) {
    if (low + high > 0) [low, high] = [-high, -low];
    const width = high - low,
      middle = (low + high) / 2;
    if (width * (1 + Math.abs(middle)) < NARROW) {
      const m2 = middle * middle,
        w2 = width * width;
      const series = ((m2 - 1) * w2) / 24 + ((m2 * m2 - 6 * m2 + 3) * w2 * w2) / 1920;
      return logDensity(middle) + Math.log(width) + Math.log1p(series);
    }
    if (high >= -TAIL) return Math.log(ndtr(high) - ndtr(low));
    const fall = Math.exp((-width * (-high - low)) / 2); // φ(low) / φ(high)
    return logDensity(high) + Math.log(mills(-high) - (fall > 0 ? fall * mills(-low) : 0));
  }

  return {
    HALF_LOG_2PI,
    TINY,
    polynomial,
    logGamma,
    logGammaStep,
    logFactorialRest,
    roundEven,
    safeExp,
    boundedExp,
    expExcess,
    softplus,
    sigmoid,
    logAddExp,
    logSumExp,
    ndtr,
    logNdtr,
    ndtri,
    logBetween,
  };
})();
