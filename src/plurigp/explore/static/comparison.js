"use strict";
// Two sets of patients side by side: standardised differences, distributions and outcome curves.
const comparison = (() => {
  const { el, svg, number, percent, printable } = dom;
  const WIDTH = 300,
    HEIGHT = 54,
    BINS = 36,
    MOST_SHOWN = 12;

  // Both distributions as areas over one scale: A above the line, B below.
  function densities(column, a, b, everyone) {
    const x = valueList.scaleFor(column, [a, b], everyone),
      unit = valueList.WIDTH / BINS;
    const heights = (sorted) => {
      const counts = new Float64Array(BINS);
      for (const value of sorted) counts[Math.min(Math.floor(x(value) / unit), BINS - 1)] += 1;
      const smooth = counts.map(
        (_, i) =>
          ((counts[i - 2] ?? 0) +
            2 * (counts[i - 1] ?? 0) +
            3 * counts[i] +
            2 * (counts[i + 1] ?? 0) +
            (counts[i + 2] ?? 0)) /
          9,
      );
      return smooth.map((count) => count / sorted.length);
    };
    const [ha, hb] = [heights(a.sorted), heights(b.sorted)],
      top = Math.max(...ha, ...hb),
      middle = HEIGHT / 2;
    const area = (h, sign) => {
      const corner = (v, i) => [((i + 0.5) / BINS) * WIDTH, middle - (sign * v * (middle - 2)) / top];
      const corners = [[0, middle], ...Array.from(h, corner), [WIDTH, middle]];
      return `M${corners.map(([u, v]) => `${u.toFixed(1)} ${v.toFixed(1)}`).join("L")}Z`;
    };
    const at = (value) => (x(value) / valueList.WIDTH) * WIDTH;
    return svg(
      "svg",
      { class: "densities", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { class: "set-a", d: area(ha, 1) }),
      svg("path", { class: "set-b", d: area(hb, -1) }),
      svg("line", { class: "tick", x1: at(a.mean), x2: at(a.mean), y1: 0, y2: middle }),
      svg("line", { class: "tick", x1: at(b.mean), x2: at(b.mean), y1: middle, y2: HEIGHT }),
    );
  }

  function levelPairs(a, b) {
    const shown = a.probabilities
      .map((p, k) => [Math.max(p, b.probabilities[k]), k])
      .sort((p, q) => q[0] - p[0])
      .slice(0, 4)
      .map(([, k]) => k);
    const levels = a.probabilities.length === 2 ? [1] : shown.sort((p, q) => p - q),
      step = HEIGHT / levels.length;
    return svg(
      "svg",
      { class: "densities", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      levels.flatMap((k, i) => [
        svg("rect", { class: "set-a", x: 0, y: i * step + 1, width: a.probabilities[k] * WIDTH, height: step * 0.42 }),
        svg("rect", {
          class: "set-b",
          x: 0,
          y: i * step + step * 0.5,
          width: b.probabilities[k] * WIDTH,
          height: step * 0.42,
        }),
      ]),
    );
  }

  function typical(column, part, level) {
    if (part.probabilities) return `${valueList.levelName(column, level)} ${percent(part.probabilities[level])}`;
    return `${number(part.mean)} (${number(answers.quantile(part.sorted, 0.05))} to ${number(answers.quantile(part.sorted, 0.95))})`;
  }

  function line(column, a, b, everyone, { size, level }) {
    return el(
      "li",
      { class: "pair" },
      el("div", { class: "name" }, printable(column.name)),
      el("div", { class: "size" }, `${size >= 0 ? "+" : "−"}${number(Math.abs(size), 2)}`),
      a.probabilities ? levelPairs(a, b) : densities(column, a, b, everyone),
      el(
        "div",
        { class: "both" },
        el("span", { class: "a" }, `A: ${typical(column, a, level)}`),
        el("span", { class: "b" }, `B: ${typical(column, b, level)}`),
      ),
    );
  }

  // The list of differences, largest first.
  function render(target, model, a, b, everyone, all) {
    const ranked = model.columns
      .map((_, d) => ({ d, change: sets.difference(a[d], b[d]) }))
      .sort((p, q) => Math.abs(q.change.size) - Math.abs(p.change.size));
    const shown = all ? ranked : ranked.slice(0, MOST_SHOWN);
    dom.show(
      target,
      shown.map(({ d, change }) => line(model.columns[d], a[d], b[d], everyone[d], change)),
    );
    return ranked.length - shown.length;
  }

  // --- outcome curves, of groups of a study ---

  // Kaplan–Meier curves with their 95 % intervals.
  function curves(target, shown, timeName) {
    const box = { left: 40, top: 8, width: 300, height: 150 };
    const last = Math.max(...shown.flatMap(({ curve }) => curve.time)),
      x = (t) => box.left + (t / (last || 1)) * box.width;
    const y = (p) => box.top + (1 - p) * box.height;
    const steps = (times, values) =>
      values
        .map((p, i) => `${i ? `H${x(times[i]).toFixed(1)}V` : `M${x(times[i]).toFixed(1)} `}${y(p ?? 1).toFixed(1)}`)
        .join("");
    const corners = (times, values) =>
      values.flatMap((p, i) =>
        i
          ? [
              [times[i], values[i - 1]],
              [times[i], p],
            ]
          : [[times[0], p]],
      );
    const band = ({ time, low, high }) => {
      const around = [...corners(time, high), ...corners(time, low).reverse()];
      return `M${around.map(([t, p]) => `${x(t).toFixed(1)} ${y(p ?? 1).toFixed(1)}`).join("L")}Z`;
    };
    const drawn = svg(
      "svg",
      {
        class: "curves",
        viewBox: "0 0 356 196",
        role: "img",
        "aria-label": `Outcome curves of ${shown.map(({ name }) => name).join(" and ")}`,
      },
      [0, 0.25, 0.5, 0.75, 1].flatMap((p) => [
        svg("line", { class: "grid", x1: box.left, x2: box.left + box.width, y1: y(p), y2: y(p) }),
        svg("text", { x: box.left - 6, y: y(p) + 4, "text-anchor": "end" }, percent(p)),
      ]),
      [0, 0.5, 1].map((part) =>
        svg("text", { x: x(part * last), y: box.top + box.height + 16, "text-anchor": "middle" }, number(part * last)),
      ),
      svg("text", { x: box.left + box.width / 2, y: 192, "text-anchor": "middle" }, printable(timeName || "time", 40)),
      shown.flatMap(({ curve, set }) => [
        svg("path", { class: `band ${set}`, d: band(curve) }),
        svg("path", { class: `curve ${set}`, d: steps(curve.time, curve.survival) }),
      ]),
    );
    dom.show(
      target,
      el("h3", {}, "Outcome"),
      drawn,
      el(
        "p",
        { class: "soft" },
        "Share without the event, with 95% intervals, from the study (Kaplan–Meier). The outcome did not shape the map.",
      ),
    );
  }

  return { render, curves };
})();
