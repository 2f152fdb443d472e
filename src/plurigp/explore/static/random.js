"use strict";
// Random numbers that a seed fixes, and exact draws of the distributions that the families need.
const random = (() => {
  // A generator of uniform numbers in (0, 1) with 32 bits each: a counter through the finaliser of MurmurHash3.
  function generator(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x9e3779b9) >>> 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      return (((z ^ (z >>> 16)) >>> 0) + 0.5) / 4294967296;
    };
  }

  // Box and Muller.
  const normal = (uniform) => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());

  // Marsaglia and Tsang (2000); a shape below one is raised by one and corrected by a power.
  function gamma(uniform, shape) {
    if (shape < 1) return gamma(uniform, shape + 1) * Math.pow(uniform(), 1 / shape);
    const d = shape - 1 / 3,
      c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = normal(uniform),
        v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  function beta(uniform, a, b) {
    const x = gamma(uniform, a),
      y = gamma(uniform, b);
    return x + y > 0 ? x / (x + y) : a / (a + b);
  }

  // Few trials one by one; of many, the middle order statistic of as many uniforms is a beta (Ahrens and Dieter 1974).
  function binomial(uniform, trials, p) {
    let found = 0;
    while (trials > 30) {
      const middle = 1 + Math.floor(trials / 2),
        cut = beta(uniform, middle, trials + 1 - middle);
      if (cut <= p) {
        found += middle;
        trials -= middle;
        p = (p - cut) / (1 - cut);
      } else {
        trials = middle - 1;
        p /= cut;
      }
    }
    for (let i = 0; i < trials; i++) found += uniform() < p ? 1 : 0;
    return found;
  }

  // Arrivals within time `rate`: many at a time by a gamma, the last ones by exponentials (Ahrens and Dieter 1974).
  function poisson(uniform, rate) {
    let found = 0;
    while (rate > 20) {
      const many = Math.floor((7 * rate) / 8),
        time = gamma(uniform, many);
      if (time > rate) return found + binomial(uniform, many - 1, rate / time);
      found += many;
      rate -= time;
    }
    for (let left = Math.exp(-rate), product = uniform(); product > left; product *= uniform()) found += 1;
    return found;
  }

  return { generator, normal, gamma, beta, binomial, poisson };
})();
