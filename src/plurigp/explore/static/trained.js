"use strict";
// The trained model: arrays unpacked, the sparse Gaussian process decoder and the encoder, in double precision.
const trained = (() => {
  // {dtype, shape, data in base64} -> Float64Array, whatever was stored.
  function unpack({ dtype, data }) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const types = {
      f4: Float32Array,
      f8: Float64Array,
      u1: Uint8Array,
      u2: Uint16Array,
      i2: Int16Array,
      u4: Uint32Array,
    };
    return Float64Array.from(new types[dtype](bytes.buffer));
  }

  const isArray = (part) => part !== null && typeof part === "object" && "dtype" in part && "data" in part;
  const unpackAll = (part) => {
    if (isArray(part)) return unpack(part);
    if (Array.isArray(part)) return part.map(unpackAll);
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, unpackAll(value)]));
  };

  // The content that Python exported, with arrays as Float64Array and each column beside its family and features.
  function open(content) {
    const model = unpackAll(content);
    let feature = 0;
    for (const place of model.order) {
      const column = model.columns[place];
      column.family = families[column.kind];
      column.firstFeature = feature;
      feature += column.family.features(column.stand_in, column.width).length;
    }
    model.n_features = feature;
    return model;
  }

  // --- decoder: f_mean = b + s Aᵀm and f_var = s² (k(x, x) − |A|² + Aᵀ S A) with A = W k(Z, x) ---

  const KERNELS = {
    rbf: (inner, square) => Math.exp(-0.5 * square),
    matern52: (inner, square) => {
      const r = Math.sqrt(5 * square + 1e-12);
      return (1 + r + (r * r) / 3) * Math.exp(-r);
    },
    linear: (inner) => inner,
  };

  function kernelAt(gp, Q, x, z, at) {
    let total = 0;
    gp.parts.forEach((part, n) => {
      let inner = 0,
        square = 0;
      for (let q = 0; q < Q; q++) {
        const scale = gp.lengthscales[n * Q + q],
          a = x[q] / scale,
          b = z[at + q] / scale;
        inner += a * b;
        square += (a - b) ** 2;
      }
      total += gp.weights[n] * KERNELS[part](inner, square);
    });
    return total;
  }

  // A = W k(Z, x) [M], W lower triangular; and the variance that the inducing points leave.
  function project(model, x) {
    const { gp, Q, M } = model,
      k = new Float64Array(M),
      A = new Float64Array(M);
    for (let m = 0; m < M; m++) k[m] = kernelAt(gp, Q, x, gp.Z, m * Q);
    let rest = kernelAt(gp, Q, x, x, 0);
    for (let m = 0; m < M; m++) {
      let sum = 0;
      for (let j = 0; j <= m; j++) sum += gp.W[m * M + j] * k[j];
      A[m] = sum;
      rest -= sum * sum;
    }
    return { A, rest: Math.max(rest, 0) };
  }

  // Mean and variance of the functions from `start` up to `end` at a position [Q].
  function moments(model, x, start = 0, end = model.P) {
    const { gp, M } = model,
      { A, rest } = project(model, x),
      T = (M * (M + 1)) / 2;
    const outer = new Float64Array(T),
      mean = new Float64Array(end - start),
      variance = new Float64Array(end - start);
    for (let i = 0, t = 0; i < M; i++) for (let j = 0; j <= i; j++) outer[t++] = A[i] * A[j];
    for (let p = start; p < end; p++) {
      mean[p - start] = gp.bias[p] + gp.scale[p] * product(gp.m, p * M, A);
      variance[p - start] = gp.scale[p] ** 2 * (rest + product(gp.S, p * T, outer));
    }
    return { mean, variance };
  }

  // Σ_i a[at + i] b[i], four sums at a time: most of a placement's time is spent here.
  function product(a, at, b) {
    const whole = b.length - (b.length % 4);
    let s0 = 0,
      s1 = 0,
      s2 = 0,
      s3 = 0,
      i = 0;
    for (; i < whole; i += 4) {
      s0 += a[at + i] * b[i];
      s1 += a[at + i + 1] * b[i + 1];
      s2 += a[at + i + 2] * b[i + 2];
      s3 += a[at + i + 3] * b[i + 3];
    }
    for (; i < b.length; i++) s0 += a[at + i] * b[i];
    return s0 + s1 + (s2 + s3);
  }

  // --- encoder: q(x) = N(mean, root rootᵀ), root = diag(stretch) base, base upper triangular [Q Q] ---

  const CLIP_AT = 4;
  const softClip = (u) => u / Math.sqrt(1 + (u / CLIP_AT) ** 2);

  // The encoder's inputs: standardised features, zero at gaps, then the missingness indicators.
  function inputs(model, row) {
    const { encoder } = model,
      E = model.n_features,
      read = new Float64Array(E + encoder.indicators.length);
    const seen = new Uint8Array(E);
    model.columns.forEach((column, d) => {
      if (!row.seen[d]) return;
      column.family.features(row.values[d], column.width).forEach((feature, n) => {
        const e = column.firstFeature + n;
        seen[e] = 1;
        read[e] = softClip((feature - encoder.shift[e]) / encoder.scale[e]);
      });
    });
    encoder.indicators.forEach((d, n) => {
      read[E + n] = row.seen[d] ? 1 : 0;
    });
    return { read, seen };
  }

  // One hidden tanh layer.
  function network(net, read, Q) {
    const U = net.b1.length,
      hidden = Float64Array.from(net.b1),
      out = Float64Array.from(net.b2);
    read.forEach((value, i) => {
      if (value !== 0) for (let u = 0; u < U; u++) hidden[u] += value * net.w1[i * U + u];
    });
    for (let u = 0; u < U; u++) {
      const h = Math.tanh(hidden[u]);
      for (let q = 0; q < Q; q++) out[q] += h * net.w2[u * Q + q];
    }
    return out;
  }

  // W lower triangular with WᵀW = A⁻¹: Cholesky's factor, inverted.
  function inverseRoot(A, Q) {
    const L = new Float64Array(Q * Q),
      W = new Float64Array(Q * Q);
    for (let i = 0; i < Q; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = A[i * Q + j];
        for (let k = 0; k < j; k++) sum -= L[i * Q + k] * L[j * Q + k];
        L[i * Q + j] = i === j ? Math.sqrt(sum) : sum / L[j * Q + j];
      }
      for (let j = 0; j <= i; j++) {
        let sum = i === j ? 1 : 0;
        for (let k = j; k < i; k++) sum -= L[i * Q + k] * W[k * Q + j];
        W[i * Q + j] = sum / L[i * Q + i];
      }
    }
    return W;
  }

  // Factor analysis: Λ = I + Σ_e p_e l_e l_eᵀ over the features seen, mean Λ⁻¹ Σ_e p_e l_e y_e, base W ᵀ with WᵀW = Λ⁻¹.
  function factors(model, read, seen) {
    const { encoder, Q } = model,
      Lam = new Float64Array(Q * Q),
      b = new Float64Array(Q),
      L = encoder.loadings;
    for (let q = 0; q < Q; q++) Lam[q * Q + q] = 1;
    for (let e = 0; e < seen.length; e++) {
      if (!seen[e]) continue;
      const weight = Math.exp(encoder.log_precision[e]);
      for (let i = 0; i < Q; i++) {
        b[i] += weight * read[e] * L[e * Q + i];
        for (let j = 0; j <= i; j++) Lam[i * Q + j] += weight * L[e * Q + i] * L[e * Q + j];
      }
    }
    const W = inverseRoot(Lam, Q),
      base = new Float64Array(Q * Q),
      mean = new Float64Array(Q);
    for (let i = 0; i < Q; i++) {
      let part = 0;
      for (let j = 0; j <= i; j++) {
        part += W[i * Q + j] * b[j];
        base[j * Q + i] = W[i * Q + j];
      }
      for (let j = 0; j <= i; j++) mean[j] += W[i * Q + j] * part;
    }
    return { mean, base };
  }

  const rowNorms = (base, Q) =>
    Float64Array.from({ length: Q }, (_, i) => Math.hypot(...base.subarray(i * Q, i * Q + Q)));

  function encode(model, row) {
    const { encoder, Q } = model,
      { read, seen } = inputs(model, row);
    const shift = network(encoder.net_mean, read, Q),
      spread = network(encoder.net_sd, read, Q);
    if (encoder.type === "factors") {
      const { mean, base } = factors(model, read, seen),
        norms = rowNorms(base, Q),
        stretch = spread.map(Math.exp);
      return {
        mean: mean.map((m, q) => m + norms[q] * shift[q]),
        stretch,
        base,
        sd: norms.map((n, q) => n * stretch[q]),
      };
    }
    const mean = shift.map((m, q) => m + encoder.offset[q]),
      base = new Float64Array(Q * Q),
      sd = spread.map(special.sigmoid);
    for (let e = 0; e < seen.length; e++) for (let q = 0; q < Q; q++) mean[q] += read[e] * encoder.linear[e * Q + q];
    for (let q = 0; q < Q; q++) base[q * Q + q] = 1;
    return { mean, stretch: sd, base, sd };
  }

  // Covariance of q(x) [Q Q].
  function covariance(q, Q) {
    const out = new Float64Array(Q * Q);
    for (let i = 0; i < Q; i++)
      for (let j = 0; j < Q; j++) {
        let sum = 0;
        for (let k = 0; k < Q; k++) sum += q.base[i * Q + k] * q.base[j * Q + k];
        out[i * Q + j] = q.stretch[i] * q.stretch[j] * sum;
      }
    return out;
  }

  // log det of the root: the entropy of q(x) but for a constant.
  function logDet(q, Q) {
    let sum = 0;
    for (let i = 0; i < Q; i++) sum += Math.log(q.stretch[i] * q.base[i * Q + i]);
    return sum;
  }

  return { open, unpackAll, moments, encode, covariance, logDet, inverseRoot };
})();
