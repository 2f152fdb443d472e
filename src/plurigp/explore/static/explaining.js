"use strict";
// What each latent dimension does: its share of the variation, its relevance, and the columns that change most along it.
const explaining = (() => {
  const { el, svg, number, percent, printable } = dom;
  const PLACES = 9,
    REACH = 2,
    MOST_SHOWN = 6; // positions along a dimension, sds to either side, columns

  // Expected value of every column at positions along dimension q, or the probabilities of its levels.
  function along(model, explain, q) {
    const row = coding.emptyRow(model);
    return Array.from({ length: PLACES }, (_, i) => {
      const x = Float64Array.from(explain.centre);
      x[q] += REACH * explain.spread[q] * ((2 * i) / (PLACES - 1) - 1);
      const f = trained.moments(model, x);
      return model.columns.map((column, d) => answers.meanAt(model, column, row.values[d], f));
    });
  }

  // How far a column goes from one end to the other, in sds of everyone; with the curve that shows it.
  function travel(column, found, everyone) {
    if (column.levels) {
      const spread = found[0].map((_, k) => Math.max(...found.map((p) => p[k])) - Math.min(...found.map((p) => p[k])));
      const level = column.levels.length === 2 ? 1 : spread.indexOf(Math.max(...spread)),
        p = everyone.probabilities[level];
      const values = found.map((shares) => shares[level]);
      return { values, level, size: (values[PLACES - 1] - values[0]) / Math.sqrt(Math.max(p * (1 - p), 1e-6)) };
    }
    const values = found.map(([coded]) => coding.decodeExactly(column, coded)),
      scale = column.positive ? Math.log : (v) => v;
    return { values, level: null, size: (scale(values[PLACES - 1]) - scale(values[0])) / everyone.sd };
  }

  function curve(values) {
    const low = Math.min(...values),
      span = Math.max(...values) - low || 1;
    const points = values
      .map((v, i) => `${((i / (PLACES - 1)) * 100).toFixed(1)},${(25 - ((v - low) / span) * 22).toFixed(1)}`)
      .join(" ");
    return svg("svg", { class: "spark", viewBox: "-2 0 104 28", "aria-hidden": "true" }, svg("polyline", { points }));
  }

  function line(column, { values, level, size }) {
    const shown = (v) => (level === null ? number(v) : percent(v)),
      name = level === null ? "" : `${valueList.levelName(column, level)}: `;
    return el(
      "li",
      { class: "travel" },
      el("div", { class: "name" }, printable(column.name)),
      curve(values),
      el(
        "div",
        { class: "change" },
        `${name}${shown(values[0])} → ${shown(values[PLACES - 1])} (${size >= 0 ? "+" : "−"}${number(Math.abs(size), 2)} sd)`,
      ),
    );
  }

  const meter = (label, share) =>
    el(
      "div",
      { class: "meter" },
      el("span", {}, label),
      svg(
        "svg",
        { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "rail", width: 100, height: 8 }),
        svg("rect", { class: "fill", width: 100 * share, height: 8 }),
      ),
      el("strong", {}, percent(share)),
    );

  // Dimensions by their share, the largest first.
  function render(target, model, explain, everyone) {
    const order = explain.shares.map((share, q) => [share, q]).sort((a, b) => b[0] - a[0]);
    dom.show(
      target,
      order.map(([share, q]) => {
        const steps = along(model, explain, q);
        const ranked = model.columns
          .map((column, d) => [
            column,
            travel(
              column,
              steps.map((step) => step[d]),
              everyone[d],
            ),
          ])
          .sort((a, b) => Math.abs(b[1].size) - Math.abs(a[1].size))
          .slice(0, MOST_SHOWN);
        return el(
          "section",
          { class: "dimension" },
          el("h3", {}, `Dimension ${q + 1}`),
          meter("share of the variation", share),
          meter("learned relevance", explain.relevance[q]),
          el(
            "ul",
            { class: "travels" },
            ranked.map(([column, found]) => line(column, found)),
          ),
        );
      }),
    );
  }

  return { render };
})();
