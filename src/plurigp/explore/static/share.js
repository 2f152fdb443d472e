"use strict";
// A view in the address, a placed patient as CSV or JSON, and the view as PNG or SVG.
const sharing = (() => {
  const { printable } = dom;
  const round = (value) => Number(value.toPrecision(6));

  // --- the address: plane, colour, centre, zoom, tab and point; never a patient's answers ---

  function writeAddress(view) {
    const parts = { plane: view.plane, colour: view.colour, u: round(view.centre[0]), v: round(view.centre[1]), zoom: round(view.scale), tab: view.tab };
    if (view.point) parts.at = Array.from(view.point, round).join(",");
    history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  }

  // What an address says, or null where it says nothing that can be used.
  function readAddress(nPlanes, nColours, tabs, Q) {
    const given = new URLSearchParams(location.hash.slice(1)), whole = (name, most) => {
      const value = Number(given.get(name));
      return Number.isInteger(value) && value >= 0 && value < most ? value : 0;
    };
    if (!given.has("plane")) return null;
    const [u, v, zoom] = ["u", "v", "zoom"].map((name) => Number(given.get(name)));
    const at = (given.get("at") || "").split(",").map(Number);
    return {
      plane: whole("plane", nPlanes), colour: whole("colour", nColours),
      view: [u, v, zoom].every(Number.isFinite) && zoom > 0 ? { centre: [u, v], scale: zoom } : null,
      tab: tabs.includes(given.get("tab")) ? given.get("tab") : tabs[0],
      point: at.length === Q && at.every(Number.isFinite) && given.get("at") ? Float64Array.from(at) : null,
    };
  }

  // --- a placed patient ---

  // Text that a spreadsheet would run as a formula gets an apostrophe; quotes where CSV needs them.
  function csvCell(cell) {
    if (cell === null || cell === undefined) return "";
    const text = typeof cell === "string" && /^[=+\-@\t\r]./s.test(cell) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(cell) ? `'${cell}` : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  // One entry per column: what was given, or what is expected.
  function patient(model, given, placed) {
    const columns = model.columns.map((column, d) => {
      const gap = placed.gaps[d], answer = given[d];
      if (!gap) return { column: column.name, given: column.levels ? column.levels[answer.level] : answer.text };
      if (gap.probabilities) return { column: column.name, probabilities: column.levels.map((level, k) => ({ level, probability: gap.probabilities[k] })) };
      const quantiles = Object.fromEntries(answers.LEVELS.map((p, k) => [`q${100 * p}`, gap.quantiles[k]]));
      return { column: column.name, expected: gap.mean, ...quantiles };
    });
    const groups = placed.groups.map((probability, k) => ({ group: placed.groupNames[k], probability }));
    return { position: { mean: Array.from(placed.q.mean), sd: Array.from(placed.q.sd) }, groups, columns };
  }

  function patientCsv(found) {
    const head = ["part", "name", "given", "expected", "q5", "q25", "q50", "q75", "q95", "level", "probability"];
    const lines = found.position.mean.map((mean, q) => ["position", `dimension ${q + 1}`, "", mean, "", "", "", "", "", "", ""]);
    found.position.sd.forEach((sd, q) => lines.push(["position sd", `dimension ${q + 1}`, "", sd, "", "", "", "", "", "", ""]));
    for (const { group, probability } of found.groups) lines.push(["group", group, "", "", "", "", "", "", "", "", probability]);
    for (const part of found.columns) {
      if (part.probabilities) for (const { level, probability } of part.probabilities) lines.push(["column", part.column, "", "", "", "", "", "", "", level, probability]);
      else lines.push(["column", part.column, part.given, part.expected, part.q5, part.q25, part.q50, part.q75, part.q95, "", ""]);
    }
    return [head, ...lines].map((cells) => cells.map(csvCell).join(",")).join("\n") + "\n";
  }

  // --- the view as SVG ---

  const escaped = (text) => printable(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  function viewSvg(drawn, legend) {
    const { width, height, state, toPixel, radius, ellipses, labels } = drawn, place = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    const hex = (i) => `#${[0, 1, 2].map((k) => state.colours[3 * i + k].toString(16).padStart(2, "0")).join("")}`;
    const within = ([x, y]) => x > -9 && y > -9 && x < width + 9 && y < height + 9;
    const points = state.flats.map((flat, i) => [toPixel(flat), i]).filter(([pixel]) => within(pixel))
      .map(([pixel, i]) => `<path transform="translate(${place(pixel)})" fill="${hex(i)}" d="${drawing.shapePath(state.shapes[i], radius)}"/>`);
    const lines = state.contours && state.lines ? state.lines.flat().map(([a, b]) => `M${place(toPixel(a))}L${place(toPixel(b))}`).join("") : "";
    const rings = ellipses.map((e) => `<ellipse transform="translate(${place([e.x, e.y])}) rotate(${(e.angle * 180) / Math.PI})" rx="${e.long.toFixed(1)}" ry="${e.short.toFixed(1)}" fill="none" stroke="#b3005e" stroke-width="2"/>`);
    const outlines = state.sets.filter((set) => set?.outline).map((set) => `<path d="M${set.outline.map((p) => place(toPixel(p))).join("L")}Z" fill="none" stroke="#1c2430" stroke-width="2"/>`);
    const names = legend.map(({ name, colour }, k) => `<text x="14" y="${20 + 18 * k}" fill="${colour}">${escaped(name)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="13">`
      + `<rect width="100%" height="100%" fill="#ffffff"/><g fill-opacity="0.78">${points.join("")}</g><path d="${lines}" stroke="#56606e" stroke-opacity="0.5" fill="none"/>`
      + `${rings.join("")}${outlines.join("")}${names.join("")}<text x="${width - 12}" y="${height - 10}" text-anchor="end" fill="#56606e">${escaped(labels[0])} →</text></svg>`;
  }

  return { writeAddress, readAddress, patient, patientCsv, viewSvg, csvCell };
})();
