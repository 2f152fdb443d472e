"use strict";
// Lists of columns: expected value with interval, or probabilities of levels, beside those of everyone.
const valueList = (() => {
  const { el, svg, number, percent, printable } = dom;
  const WIDTH = 150,
    HEIGHT = 22;

  // The level as it is shown.
  const levelName = (column, level) => printable(column.levels[level], 40);

  // "72 (55 to 90)", or "yes 34%".
  function words(column, gap) {
    if (gap.probabilities) {
      const level = column.levels.length === 2 ? 1 : gap.probabilities.indexOf(Math.max(...gap.probabilities));
      return { main: `${levelName(column, level)} ${percent(gap.probabilities[level])}`, range: "" };
    }
    const shown = (value) => number(value);
    return { main: shown(gap.mean), range: `${shown(gap.quantiles[0])} to ${shown(gap.quantiles[4])}` };
  }

  // "+0.8 sd" and what it means.
  function differenceWords(column, { size, level }) {
    if (!Number.isFinite(size) || Math.abs(size) < 0.1) return "as the average";
    const much = Math.abs(size) >= 0.8 ? "much " : Math.abs(size) < 0.3 ? "slightly " : "";
    if (level !== null) return `${levelName(column, level)}: ${much}${size > 0 ? "more" : "less"} often than average`;
    return `${much}${size > 0 ? "above" : "below"} average (${number(Math.abs(size), 2)} sd)`;
  }

  // A scale that holds the middle of everyone's values and of these.
  function scaleFor(column, gaps, everyone) {
    const ends = [everyone.sorted, ...gaps.map((gap) => gap.sorted)].flatMap((sorted) =>
      [0.02, 0.98].map((p) => answers.quantile(sorted, p)),
    );
    const log = column.positive && Math.min(...ends) > 0,
      to = (v) => (log ? Math.log(Math.max(v, 1e-300)) : v);
    const low = Math.min(...ends.map(to)),
      high = Math.max(...ends.map(to)),
      span = high - low || 1;
    return (value) => 4 + (WIDTH - 8) * Math.min(Math.max((to(value) - low) / span, 0), 1);
  }

  // Interval (5 % to 95 %), quartiles and expected value above everyone's interval.
  function strip(column, gap, everyone) {
    const x = scaleFor(column, [gap], everyone),
      q = gap.quantiles;
    const all = [0.05, 0.95].map((p) => answers.quantile(everyone.sorted, p));
    return svg(
      "svg",
      { class: "strip", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
      svg("rect", { class: "everyone", x: x(all[0]), y: 8, width: Math.max(x(all[1]) - x(all[0]), 1), height: 6 }),
      svg("line", { class: "average", x1: x(everyone.mean), x2: x(everyone.mean), y1: 3, y2: 19 }),
      svg("line", { class: "interval", x1: x(q[0]), x2: x(q[4]), y1: 11, y2: 11 }),
      svg("line", { class: "quartiles", x1: x(q[1]), x2: x(q[3]), y1: 11, y2: 11 }),
      svg("circle", { class: "expected", cx: x(gap.mean), cy: 11, r: 4.5 }),
    );
  }

  // Shares of the levels side by side, everyone's beneath.
  function levelBars(gap, everyone) {
    const bar = (shares, y, height, kind) => {
      let at = 0;
      return shares.map((share, k) => {
        const width = share * WIDTH,
          rect = svg("rect", { class: `${kind} level-${k % 8}`, x: at, y, width: Math.max(width - 1, 0), height });
        at += width;
        return rect;
      });
    };
    return svg(
      "svg",
      { class: "strip", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
      ...bar(gap.probabilities, 3, 11, "own"),
      ...bar(everyone.probabilities, 16, 4, "all"),
    );
  }

  // One line of the list.
  function line(column, gap, everyone, extra = null) {
    const { main, range } = words(column, gap),
      change = sets.fromAverage(column, gap, everyone);
    const item = el(
      "li",
      { class: "value", "data-size": Math.abs(change.size) },
      el("div", { class: "name" }, printable(column.name)),
      el(
        "div",
        { class: "figure" },
        el("strong", {}, main),
        range ? el("span", { class: "range" }, ` ${range}`) : null,
      ),
      gap.probabilities ? levelBars(gap, everyone) : strip(column, gap, everyone),
      el("div", { class: "change" }, differenceWords(column, change), extra),
    );
    if (gap.probabilities && column.levels.length > 2) {
      const shares = gap.probabilities
        .map((p, k) => [p, k])
        .sort((a, b) => b[0] - a[0])
        .slice(0, 4);
      item.append(
        el("div", { class: "levels" }, shares.map(([p, k]) => `${levelName(column, k)} ${percent(p)}`).join(" · ")),
      );
    }
    return item;
  }

  // gaps by column, null where the value is known; the most unusual first where asked for.
  function render(target, model, gaps, everyone, { sort = "table", query = "", extra = () => null } = {}) {
    const wanted = query.trim().toLowerCase();
    const lines = gaps
      .map((gap, d) =>
        gap && String(model.columns[d].name).toLowerCase().includes(wanted)
          ? line(model.columns[d], gap, everyone[d], extra(d))
          : null,
      )
      .filter(Boolean);
    if (sort === "unusual") lines.sort((a, b) => b.dataset.size - a.dataset.size);
    dom.show(target, lines.length ? lines : [el("li", { class: "none" }, "No column matches.")]);
  }

  return { render, words, levelName, differenceWords, scaleFor, WIDTH };
})();
