"use strict";
// Place a patient: the form, and what follows from its answers.
const placePanel = (() => {
  const { byId, el, number, percent, printable, say } = dom;
  const { model, everyone, groupNames } = world;
  const MOST_NEXT = 5,
    LEAST_GAIN = 0.0005; // measurements that are named, and what they must tell
  const state = { placed: null, given: null, took: 0, turn: 0 };
  let shown = () => {}; // told where the patient lies

  const patient = form.create(byId("form-fields"), model, everyone, schedule);

  let scheduled = false;
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      place();
    });
  }

  function place() {
    const started = performance.now(),
      { row, given, nGiven } = patient.read();
    const placed = nGiven ? answers.place(model, row) : null;
    if (placed)
      Object.assign(placed, { row, S: trained.covariance(placed.q, model.Q), groupNames: [...groupNames, "Outliers"] });
    Object.assign(state, { placed, given, turn: state.turn + 1 });
    shown(placed);
    byId("placed").hidden = !placed;
    byId("placed-empty").hidden = Boolean(placed);
    if (!placed) {
      say("No answers: nobody is placed.");
      return;
    }
    tellWhere(placed, nGiven);
    list();
    state.took = performance.now() - started;
    const { turn } = state;
    setTimeout(() => turn === state.turn && tellNext(placed), 30);
  }

  function tellWhere(placed, nGiven) {
    const size = number(Math.exp(trained.logDet(placed.q, model.Q) / model.Q), 2);
    const given = `${nGiven} of ${model.columns.length} columns given.`;
    byId("placed-where").textContent =
      `${given} Typical uncertainty of the position: ${size} (1 if nothing were known).`;
    byId("placed-doubt").hidden = placed.effective >= 2;
    colouring.groupBars(byId("placed-groups"), placed.groups);
  }

  function list() {
    if (!state.placed) return;
    const options = { sort: byId("placed-sort").value, query: byId("form-search").value };
    valueList.render(byId("placed-values"), model, state.placed.gaps, everyone, options);
  }

  // Which measurement would tell most next.
  function tellNext(placed) {
    const gaps = placed.gaps.flatMap((gap, d) => (gap ? [d] : []));
    const ranked = answers.information(model, placed.row, placed, gaps).sort((a, b) => b.gain - a.gain);
    const best = ranked.slice(0, MOST_NEXT).filter(({ gain }) => gain > LEAST_GAIN);
    const line = ({ d, gain }) =>
      el(
        "li",
        {},
        el("button", { type: "button", onclick: () => patient.focus(d) }, printable(model.columns[d].name)),
        ` would shrink the uncertainty by about ${percent(gain)}`,
      );
    dom.show(byId("next"), best.length ? best.map(line) : el("li", {}, "No further measurement would tell much."));
    say(
      `Placed. ${likeliest(placed)}${best.length ? `${printable(model.columns[best[0].d].name)} would tell most next.` : ""}`,
    );
    document.documentElement.dataset.placed = String(state.turn);
  }

  function likeliest({ groups, groupNames: names }) {
    if (!groups.length) return "";
    const top = groups.indexOf(Math.max(...groups));
    return `Most probable: ${names[top]}, ${percent(groups[top])}. `;
  }

  const saved = () => sharing.patient(model, state.given, state.placed);
  byId("save-csv").addEventListener("click", () =>
    dom.download("patient.csv", "text/csv", sharing.patientCsv(saved())),
  );
  byId("save-json").addEventListener("click", () =>
    dom.download("patient.json", "application/json", JSON.stringify(saved(), null, 1)),
  );
  byId("placed-sort").addEventListener("change", list);
  byId("clear").addEventListener("click", () => {
    patient.clear();
    schedule();
  });
  byId("form-search").addEventListener("input", (event) => {
    patient.filter(event.target.value);
    list();
  });

  return {
    state,
    whenPlaced: (act) => {
      shown = act;
    },
  };
})();
