"use strict";
// Decode a point: what a patient there would look like.
const pointPanel = (() => {
  const { byId, el, number, printable } = dom;
  const { model, everyone, rows } = world;
  const state = { point: null, decoded: null };

  function show(x, nearest = -1) {
    state.point = x;
    state.decoded = answers.decode(model, x);
    byId("point-empty").hidden = true;
    byId("point-found").hidden = false;
    const places = Array.from(x, (value, q) => `dimension ${q + 1}: ${number(value, 2)}`);
    byId("point-where").textContent = `At ${places.join(", ")}.`;
    colouring.groupBars(byId("point-groups"), groupsAt(x));
    list();
    if (rows) showRow(nearest);
  }

  function list() {
    if (!state.decoded) return;
    const options = { sort: byId("point-sort").value, query: byId("point-search").value };
    valueList.render(byId("point-values"), model, state.decoded, everyone, options);
  }

  // Groups at a position that is known exactly.
  function groupsAt(x) {
    if (model.groups) return answers.memberships(model.groups, x, new Float64Array(model.Q));
    return model.prior ? answers.priorShares(model, x) : [];
  }

  // The three most unusual columns, in words.
  function inWords() {
    const changes = state.decoded.map((gap, d) => {
      const change = sets.fromAverage(model.columns[d], gap, everyone[d]);
      return { column: model.columns[d], change, size: Math.abs(change.size) };
    });
    const most = changes.sort((a, b) => b.size - a.size).slice(0, 3);
    return most
      .map(({ column, change }) => `${printable(column.name)}: ${valueList.differenceWords(column, change)}`)
      .join("; ");
  }

  // Only in pages that hold rows: the row under the pointer, and its cells.
  function showRow(nearest) {
    if (nearest < 0) {
      dom.show(byId("point-row"), el("p", { class: "soft" }, "No patient lies exactly here."));
      return;
    }
    const cells = model.columns.map((column, d) => [printable(column.name), rows.cells[d][nearest]]);
    const lines = cells.flatMap(([name, cell]) => (cell === null ? [] : [el("dt", {}, name), el("dd", {}, cell)]));
    const head = el("summary", {}, `Row ${rows.number[nearest]} of the table`);
    dom.show(byId("point-row"), el("details", {}, head, el("dl", {}, lines)));
  }

  for (const id of ["point-sort", "point-search"]) byId(id).addEventListener("input", list);

  return { state, show, inWords };
})();
