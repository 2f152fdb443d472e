"use strict";
// A view in the address, a placed patient as CSV or JSON, and the view as PNG or SVG.
const sharing = (() => {
  const { printable, svg } = dom;
  const round = (value) => Number(value.toPrecision(6));

  // --- the address: plane, colour, centre, zoom, tab and point; never a patient's answers ---

  function writeAddress(view) {
    const parts = {
      plane: view.plane,
      colour: view.colour,
      u: round(view.centre[0]),
      v: round(view.centre[1]),
      zoom: round(view.scale),
      tab: view.tab,
    };
    if (view.point) parts.at = Array.from(view.point, round).join(",");
    history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  }

  // What an address says, or null where it says nothing that can be used.
  function readAddress(nPlanes, nColours, tabs, Q) {
    const given = new URLSearchParams(location.hash.slice(1)),
      whole = (name, most) => {
        const value = Number(given.get(name));
        return Number.isInteger(value) && value >= 0 && value < most ? value : 0;
      };
    if (!given.has("plane")) return null;
    const [u, v, zoom] = ["u", "v", "zoom"].map((name) => Number(given.get(name)));
    const at = (given.get("at") || "").split(",").map(Number);
    return {
      plane: whole("plane", nPlanes),
      colour: whole("colour", nColours),
      view: [u, v, zoom].every(Number.isFinite) && zoom > 0 ? { centre: [u, v], scale: zoom } : null,
      tab: tabs.includes(given.get("tab")) ? given.get("tab") : tabs[0],
      point: at.length === Q && at.every(Number.isFinite) && given.get("at") ? Float64Array.from(at) : null,
    };
  }

  // --- a placed patient ---

  // Text that a spreadsheet would run as a formula gets an apostrophe; quotes where CSV needs them.
  function csvCell(cell) {
    if (cell === null || cell === undefined) return "";
    const text =
      typeof cell === "string" && /^[=+\-@\t\r]./s.test(cell) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(cell)
        ? `'${cell}`
        : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  // One entry per column: what was given, or what is expected.
  function patient(model, given, placed) {
    const columns = model.columns.map((column, d) => {
      const gap = placed.gaps[d],
        answer = given[d];
      if (!gap) return { column: column.name, given: column.levels ? column.levels[answer.level] : answer.text };
      if (gap.probabilities)
        return {
          column: column.name,
          probabilities: column.levels.map((level, k) => ({ level, probability: gap.probabilities[k] })),
        };
      const quantiles = Object.fromEntries(answers.LEVELS.map((p, k) => [`q${100 * p}`, gap.quantiles[k]]));
      return { column: column.name, expected: gap.mean, ...quantiles };
    });
    const groups = placed.groups.map((probability, k) => ({ group: placed.groupNames[k], probability }));
    return { position: { mean: Array.from(placed.q.mean), sd: Array.from(placed.q.sd) }, groups, columns };
  }

  const CSV_COLUMNS = ["part", "name", "given", "expected", "q5", "q25", "q50", "q75", "q95", "level", "probability"];

  // One line per dimension, group, column, and level of a column that is not known.
  function patientCsv({ position, groups, columns }) {
    const lines = [
      ...position.mean.map((expected, q) => ({ part: "position", name: `dimension ${q + 1}`, expected })),
      ...position.sd.map((expected, q) => ({ part: "position sd", name: `dimension ${q + 1}`, expected })),
      ...groups.map(({ group, probability }) => ({ part: "group", name: group, probability })),
      ...columns.flatMap(({ column, probabilities, ...values }) => {
        const line = { part: "column", name: column };
        return probabilities ? probabilities.map((level) => ({ ...line, ...level })) : [{ ...line, ...values }];
      }),
    ];
    const rows = [CSV_COLUMNS, ...lines.map((line) => CSV_COLUMNS.map((name) => line[name]))];
    return rows.map((cells) => `${cells.map(csvCell).join(",")}\n`).join("");
  }

  // --- the view as SVG, dark on white ---

  const INK = "#1c2430",
    SOFT = "#56606e",
    MARK = "#b3005e";

  function viewSvg({ width, height, state, toPixel, radius, ellipses, labels }, legend) {
    const place = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`,
      at = (pixel) => `translate(${place(pixel)})`;
    const rgb = (i) => `rgb(${state.colours.subarray(3 * i, 3 * i + 3).join(" ")})`;
    const within = ([x, y]) => x > -9 && y > -9 && x < width + 9 && y < height + 9;
    const points = svg("g", { "fill-opacity": 0.78 });
    state.flats.forEach((flat, i) => {
      const pixel = toPixel(flat),
        d = drawing.shapePath(state.shapes[i], radius);
      if (within(pixel)) points.append(svg("path", { transform: at(pixel), fill: rgb(i), d }));
    });
    const lines = state.contours && state.lines ? state.lines.flat() : [];
    const contours = lines.map(([a, b]) => `M${place(toPixel(a))}L${place(toPixel(b))}`).join("");
    const line = { fill: "none", "stroke-width": 2 };
    const rings = ellipses.map(({ x, y, long, short, angle }) => {
      const transform = `${at([x, y])} rotate(${(angle * 180) / Math.PI})`;
      return svg("ellipse", { ...line, transform, rx: long.toFixed(1), ry: short.toFixed(1), stroke: MARK });
    });
    const outlines = state.sets
      .filter((set) => set.outline)
      .map(({ outline }) =>
        svg("path", { ...line, stroke: INK, d: `M${outline.map((point) => place(toPixel(point))).join("L")}Z` }),
      );
    const names = legend.map(({ name, colour }, k) =>
      svg("text", { x: 14, y: 20 + 18 * k, fill: colour }, printable(name)),
    );
    const axis = svg("text", { x: width - 12, y: height - 10, "text-anchor": "end", fill: SOFT }, `${labels[0]} →`);
    const drawn = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "sans-serif", "font-size": 13 },
      svg("rect", { width, height, fill: "#ffffff" }),
      points,
      svg("path", { d: contours, stroke: SOFT, "stroke-opacity": 0.5, fill: "none" }),
      rings,
      outlines,
      names,
      axis,
    );
    return new XMLSerializer().serializeToString(drawn);
  }

  return { writeAddress, readAddress, patient, patientCsv, viewSvg };
})();
