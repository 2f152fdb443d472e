"use strict";
// What the points may be coloured by: group, certainty, gaps, and the model's prediction of any column.
const colouring = (() => {
  const { byId, el, svg, number, percent, printable } = dom;
  const { model, points, facts, groupNames, groupColour, groupShape } = world;

  const choices = [];
  if (groupNames.length) {
    const certainty = { label: `Certainty of the ${facts.group}`, values: () => points.certainty, show: percent };
    choices.push({ label: facts.group[0].toUpperCase() + facts.group.slice(1), groups: true }, certainty);
  }
  if (points.gaps) choices.push({ label: "Share of missing values", values: () => points.gaps, show: percent });
  model.columns.forEach((column, d) => {
    for (const level of shownLevels(column)) {
      const name = printable(column.name, 60) + (level === null ? "" : `: ${valueList.levelName(column, level)}`);
      const show = level === null ? (value) => number(value) : percent;
      choices.push({ label: name, column, values: () => predictions(column, d, level), show });
    }
  });

  function shownLevels(column) {
    if (!column.levels) return [null];
    return column.levels.length === 2 ? [1] : column.levels.map((_, k) => k);
  }

  // The model's prediction of one column at every point.
  function predictions(column, d, level) {
    const y = coding.emptyRow(model).values[d],
      [start, end] = column.functions;
    const alone = { ...column, functions: [0, end - start] };
    return Float64Array.from(points.x, (x) => {
      const found = answers.meanAt(model, alone, y, trained.moments(model, x, start, end));
      return level === null ? coding.decodeExactly(column, found[0]) : found[level];
    });
  }

  // Colours and shapes of all points, written into the map's state, and the legend.
  function apply(place, { colours, shapes }) {
    const choice = choices[place];
    if (!choice || choice.groups) byGroup(Boolean(choice), colours, shapes);
    else byValue(choice, colours, shapes);
  }

  function byGroup(named, colours, shapes) {
    for (let i = 0; i < points.n; i++) {
      colours.set(drawing.parse(named ? groupColour(points.group[i]) : world.grey), 3 * i);
      shapes[i] = named ? groupShape(points.group[i]) : 0;
    }
    dom.show(byId("legend"), named ? groupLegend() : "");
  }

  function byValue(choice, colours, shapes) {
    const values = choice.values(),
      sorted = Float64Array.from(values).sort();
    const [low, high] = [0.01, 0.99].map((p) => answers.quantile(sorted, p));
    const scale = choice.column?.positive && low > 0 ? Math.log : (value) => value;
    const span = scale(high) - scale(low) || 1;
    for (let i = 0; i < points.n; i++) {
      colours.set(drawing.scaleColour((scale(values[i]) - scale(low)) / span), 3 * i);
      shapes[i] = 0;
    }
    dom.show(byId("legend"), scaleLegend(choice, low, high));
  }

  function symbol(k) {
    const mark = svg("path", { fill: groupColour(k), d: drawing.shapePath(groupShape(k), 4.5) });
    return svg("svg", { class: "symbol", viewBox: "-6 -6 12 12", "aria-hidden": "true" }, mark);
  }

  function groupLegend() {
    const counts = new Array(groupNames.length + 1).fill(0);
    for (let i = 0; i < points.n; i++) counts[points.group[i]] += points.count ? points.count[i] : 1;
    const entry = (k, name) => (counts[k] ? el("li", {}, symbol(k), `${name} (${dom.count(counts[k])})`) : null);
    return el(
      "ul",
      {},
      groupNames.map((name, k) => entry(k + 1, name)),
      entry(0, "Outliers"),
    );
  }

  function scaleLegend(choice, low, high) {
    const bar = el("span", { class: "bar" });
    bar.style.background = drawing.gradient;
    return [
      el("p", {}, choice.column ? `Predicted ${choice.label}` : choice.label),
      el("p", { class: "scale" }, choice.show(low), bar, choice.show(high)),
    ];
  }

  // The legend as names and colours, for the SVG of the view.
  function entries(place) {
    const choice = choices[place];
    if (!choice?.groups) return [{ name: choice ? choice.label : "", colour: "#1c2430" }];
    return groupNames.map((name, k) => ({ name, colour: groupColour(k + 1) }));
  }

  // Probabilities of the groups as bars; the share of outliers comes last and is shown where it counts.
  function groupBars(target, shares) {
    const withOutliers = shares.length > groupNames.length && shares[shares.length - 1] >= 0.005;
    const names = withOutliers ? [...groupNames, "Outliers"] : groupNames;
    const bar = (k, share) =>
      svg(
        "svg",
        { class: "rail", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "rail", width: 100, height: 8 }),
        svg("rect", { fill: groupColour(k), width: 100 * share, height: 8 }),
      );
    const line = (name, i) => {
      const k = i < groupNames.length ? i + 1 : 0;
      return el("li", {}, symbol(k), el("span", {}, name), bar(k, shares[i]), el("strong", {}, percent(shares[i])));
    };
    dom.show(target, names.map(line));
  }

  return { choices, apply, entries, groupBars };
})();
