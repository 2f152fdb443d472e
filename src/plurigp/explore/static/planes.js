"use strict";
// Planes of the latent space: where a position lies on the map, which position a place on it stands for, and density contours.
const planes = (() => {
  const NEIGHBOURS = 15; // rows whose mean stands for a place of a view that is not linear

  const SIMULATED = 1500; // positions that a map without rows shows

  // The points of the map: {n, x: one Float64Array per point, group, certainty, gaps, count}.
  function openPoints(content, model) {
    if (!content.x) return simulatedPoints(model);
    const { Q } = model,
      n = content.x.length / Q;
    const x = Array.from({ length: n }, (_, i) => content.x.slice(i * Q, i * Q + Q).map((v) => v * content.step));
    return {
      n,
      x,
      group: content.group,
      certainty: content.certainty && content.certainty.map((v) => v / 100),
      gaps: content.gaps && content.gaps.map((v) => v / 20),
      count: content.count,
    };
  }

  // A map without rows shows positions drawn from the model's prior.
  function simulatedPoints(model) {
    const x = sets.priorPositions(model, SIMULATED),
      shares = x.map((place) => (model.prior ? answers.priorShares(model, place) : [1]));
    const certainty = shares.map((own) => Math.max(...own));
    return {
      n: SIMULATED,
      x,
      group: shares.map((own, i) => (model.prior ? own.indexOf(certainty[i]) + 1 : 0)),
      certainty,
      gaps: null,
      count: null,
    };
  }

  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

  // A plane with axes a and b through `centre`: both ways, and its part of a covariance.
  function linearPlane(name, labels, centre, a, b) {
    const aa = dot(a, a) || 1,
      bb = dot(b, b) || 1;
    const away = (x) => x.map((v, q) => v - centre[q]);
    const across = (S, u, v) => {
      let sum = 0;
      u.forEach((ui, i) =>
        v.forEach((vj, j) => {
          sum += ui * vj * S[i * u.length + j];
        }),
      );
      return sum;
    };
    return {
      name,
      labels,
      flat: (x) => {
        const d = away(x);
        return [dot(d, a), dot(d, b)];
      },
      lift: ([u, v]) => centre.map((c, q) => c + (u * a[q]) / aa + (v * b[q]) / bb),
      spread: (S) => [across(S, a, a), across(S, a, b), across(S, b, b)],
    };
  }

  // A view made by neighbours (UMAP): a place stands for the mean of the rows nearest to it, and the other way round.
  function neighbourPlane(name, points, flats) {
    const nearest = (distance) => {
      const best = [];
      for (let i = 0; i < points.n; i++) {
        const d = distance(i);
        if (best.length < NEIGHBOURS || d < best[best.length - 1][0]) {
          best.push([d, i]);
          best.sort((p, q) => p[0] - q[0]);
          if (best.length > NEIGHBOURS) best.pop();
        }
      }
      return best;
    };
    const mean = (best, of) => {
      const scale = best[best.length - 1][0] || 1,
        weights = best.map(([d]) => Math.exp((-2 * d) / scale));
      const total = weights.reduce((p, q) => p + q, 0);
      return of(best[0][1]).map((_, q) => best.reduce((sum, [, i], n) => sum + (weights[n] / total) * of(i)[q], 0));
    };
    const square = (u, v) => u.reduce((sum, value, q) => sum + (value - v[q]) ** 2, 0);
    return {
      name,
      labels: ["view 1", "view 2"],
      flat: (x, i) =>
        i === undefined
          ? mean(
              nearest((j) => square(x, points.x[j])),
              (j) => flats[j],
            )
          : flats[i],
      lift: (place) =>
        Float64Array.from(
          mean(
            nearest((j) => square(place, flats[j])),
            (j) => points.x[j],
          ),
        ),
      spread: null,
    };
  }

  // The view first, then every pair of dimensions.
  function openPlanes(content, points, Q) {
    const { centre } = content,
      list = [];
    if (content.axes) {
      const [a, b] = [0, 1].map((k) => Float64Array.from({ length: Q }, (_, q) => content.axes[2 * q + k]));
      const aligned = [a, b].map((axis) =>
        axis.findIndex((v, q) => Math.abs(v) > 0.999 && axis.every((w, p) => p === q || Math.abs(w) < 0.05)),
      );
      const labels = aligned.map((q, k) => (q >= 0 ? `dimension ${q + 1}` : `principal axis ${k + 1}`));
      list.push(linearPlane(Q > 2 ? "View (principal axes)" : "Map", labels, centre, a, b));
    } else if (content.flat) {
      const flats = Array.from({ length: points.n }, (_, i) => [
        content.flat[2 * i] * content.flat_step,
        content.flat[2 * i + 1] * content.flat_step,
      ]);
      list.push(neighbourPlane("View (UMAP)", points, flats));
    }
    const unit = (q) => Float64Array.from({ length: Q }, (_, p) => (p === q ? 1 : 0)),
      zero = new Float64Array(Q);
    for (let i = 0; i < Q; i++)
      for (let j = i + 1; j < Q; j++) {
        const axes = linearPlane(
          `Dimensions ${i + 1} and ${j + 1}`,
          [`dimension ${i + 1}`, `dimension ${j + 1}`],
          zero,
          unit(i),
          unit(j),
        );
        list.push({ ...axes, lift: ([u, v]) => centre.map((c, q) => (q === i ? u : q === j ? v : c)) });
      }
    return list;
  }

  // --- boxes and outlines ---

  // Around nearly all points, so that a few far ones do not shrink the rest.
  function boxOf(flats) {
    if (!flats.length) return [-3, -3, 3, 3];
    const sides = [0, 1].map((k) => {
      const sorted = flats.map((flat) => flat[k]).sort((a, b) => a - b),
        end = sorted.length - 1;
      const low = sorted[Math.floor(0.002 * end)],
        high = sorted[Math.ceil(0.998 * end)],
        margin = 0.12 * (high - low) || 1;
      return [low - margin, high + margin];
    });
    return [sides[0][0], sides[1][0], sides[0][1], sides[1][1]];
  }

  // Whether a place lies within a closed line, by the crossings of a ray.
  function insideOutline([x, y], outline) {
    let inside = false;
    for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
      const [xi, yi] = outline[i],
        [xj, yj] = outline[j];
      if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
    }
    return inside;
  }

  // --- density contours: counts on a grid, smoothed, and the lines around the densest shares of the rows ---

  const GRID = 72,
    SHARES = [0.9, 0.7, 0.5, 0.25];

  // Lines as pairs of ends in the plane's own units, one list per share.
  function contours(flats, counts, box) {
    const [left, bottom, right, top] = box,
      cell = [(right - left) / (GRID - 1), (top - bottom) / (GRID - 1)];
    let grid = new Float64Array(GRID * GRID);
    flats.forEach(([u, v], i) => {
      const x = Math.round((u - left) / cell[0]),
        y = Math.round((v - bottom) / cell[1]);
      if (x >= 0 && y >= 0 && x < GRID && y < GRID) grid[y * GRID + x] += counts ? counts[i] : 1;
    });
    for (let pass = 0; pass < 3; pass++) grid = smoothed(smoothed(grid, 1, GRID), GRID, 1);
    const sorted = Float64Array.from(grid).sort().reverse(),
      total = sorted.reduce((a, b) => a + b, 0);
    return SHARES.map((share) => {
      let sum = 0,
        i = 0;
      while (i < sorted.length - 1 && sum < share * total) sum += sorted[i++];
      return marchingSquares(grid, sorted[i]).map((ends) =>
        ends.map(([x, y]) => [left + x * cell[0], bottom + y * cell[1]]),
      );
    });
  }

  // A moving average over five cells along one axis of the grid.
  function smoothed(grid, along, across) {
    const out = new Float64Array(grid.length);
    for (let a = 0; a < GRID; a++)
      for (let b = 0; b < GRID; b++) {
        let sum = 0;
        for (let k = Math.max(b - 2, 0); k <= Math.min(b + 2, GRID - 1); k++) sum += grid[a * across + k * along];
        out[a * across + b * along] = sum / 5;
      }
    return out;
  }

  function marchingSquares(grid, level) {
    const lines = [],
      at = (x, y) => grid[y * GRID + x];
    for (let y = 0; y < GRID - 1; y++)
      for (let x = 0; x < GRID - 1; x++) {
        const corners = [
            [x, y],
            [x + 1, y],
            [x + 1, y + 1],
            [x, y + 1],
          ],
          cut = [];
        corners.forEach((from, k) => {
          const to = corners[(k + 1) % 4],
            a = at(...from) - level,
            b = at(...to) - level;
          if (a > 0 !== b > 0)
            cut.push([from[0] + ((to[0] - from[0]) * a) / (a - b), from[1] + ((to[1] - from[1]) * a) / (a - b)]);
        });
        for (let k = 0; k + 1 < cut.length; k += 2) lines.push([cut[k], cut[k + 1]]);
      }
    return lines;
  }

  return { openPoints, openPlanes, boxOf, insideOutline, contours };
})();
