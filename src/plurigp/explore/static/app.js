"use strict";
// The page put together: state, tabs, and what each action leads to.
(() => {
  const { byId, el, svg, number, percent, printable, say } = dom;
  const content = JSON.parse(byId("content").textContent), { facts } = content;
  const model = trained.open(content.model), mapContent = trained.unpackAll(content.map), rows = content.rows && trained.unpackAll(content.rows);
  const points = planes.openPoints(mapContent, model), views = planes.openPlanes(mapContent, points, model.Q);
  const TABS = ["place", "point", "compare", "explain"];
  const groupNames = model.groups ? model.groups.names : model.prior ? Array.from(model.prior.log_weights, (_, k) => `Group ${k + 1}`) : [];
  const everyone = sets.summarise(model, points.x);
  const state = { tab: "place", colour: 0, placed: null, given: null, point: null, sets: [null, null], nextSet: 0, told: 0 };

  // --- colours ---

  const groupColour = (k) => (k > 0 ? content.colours[(k - 1) % content.colours.length] : content.grey);
  const shapeOf = (k) => (k > 0 ? (k - 1 + Math.floor((k - 1) / content.colours.length)) % 6 : 4);

  const choices = [];
  if (groupNames.length) choices.push({ label: facts.group[0].toUpperCase() + facts.group.slice(1), groups: true });
  if (groupNames.length) choices.push({ label: `Certainty of the ${facts.group}`, values: () => points.certainty, show: percent });
  if (points.gaps) choices.push({ label: "Share of missing values", values: () => points.gaps, show: percent });
  model.columns.forEach((column, d) => {
    const levels = column.levels ? (column.levels.length === 2 ? [1] : column.levels.map((_, k) => k)) : [null];
    for (const level of levels) {
      const name = printable(column.name, 60) + (level === null ? "" : `: ${valueList.levelName(column, level)}`);
      choices.push({ label: name, column: d, values: () => predictions(d, level), show: level === null ? (v) => number(v) : percent });
    }
  });

  // The model's prediction of one column at every point.
  function predictions(d, level) {
    const column = model.columns[d], row = coding.emptyRow(model), [start, end] = column.functions;
    const shifted = { ...column, functions: [0, end - start] };
    return Float64Array.from(points.x, (x) => {
      const found = answers.meanAt(model, shifted, row.values[d], trained.moments(model, x, start, end));
      return level === null ? coding.decodeExactly(column, found[0]) : found[level];
    });
  }

  function recolour(number_) {
    state.colour = number_;
    const choice = choices[number_], { colours, shapes } = map.state;
    if (!choice || choice.groups) {
      for (let i = 0; i < points.n; i++) {
        colours.set(drawing.parse(choice ? groupColour(points.group[i]) : content.grey), 3 * i);
        shapes[i] = choice ? shapeOf(points.group[i]) : 0;
      }
      groupLegend(Boolean(choice));
    } else {
      const values = choice.values(), sorted = Float64Array.from(values).sort(), [low, high] = [0.01, 0.99].map((p) => answers.quantile(sorted, p));
      const log = choice.column !== undefined && model.columns[choice.column].positive && low > 0, to = (v) => (log ? Math.log(v) : v);
      const span = to(high) - to(low) || 1;
      for (let i = 0; i < points.n; i++) {
        colours.set(drawing.scaleColour((to(values[i]) - to(low)) / span), 3 * i);
        shapes[i] = 0;
      }
      scaleLegend(choice, low, high);
    }
    map.draw();
  }

  const symbol = (k) => svg("svg", { class: "symbol", viewBox: "-6 -6 12 12", "aria-hidden": "true" }, svg("path", { fill: groupColour(k), d: drawing.shapePath(shapeOf(k), 4.5) }));
  function groupLegend(named) {
    const counts = new Array(groupNames.length + 1).fill(0);
    for (let i = 0; i < points.n; i++) counts[points.group[i]] += points.count ? points.count[i] : 1;
    const entry = (k, name) => (counts[k] ? el("li", {}, symbol(k), `${name} (${counts[k].toLocaleString("en-US")})`) : null);
    dom.show(byId("legend"), named ? el("ul", {}, groupNames.map((name, k) => entry(k + 1, name)), entry(0, "Outliers")) : "");
  }
  function scaleLegend(choice, low, high) {
    const bar = el("span", { class: "bar" });
    bar.style.background = drawing.gradient;
    dom.show(byId("legend"), el("p", {}, choice.column === undefined ? choice.label : `Predicted ${choice.label}`), el("p", { class: "scale" }, choice.show(low), bar, choice.show(high)));
  }

  // --- the map ---

  const address = () => sharing.writeAddress({ plane: map.state.plane, colour: state.colour, centre: map.state.centre, scale: map.state.scale, tab: state.tab, point: state.point });
  let addressTimer = 0;
  const later = () => { clearTimeout(addressTimer); addressTimer = setTimeout(address, 250); };
  const map = atlas.create(byId("map"), points, views, { picked, lassoed, moved: later });

  function picked(x, moving, nearest) {
    state.point = x;
    showPoint(nearest);
    if (!moving) {
      openTab("point", false);
      later();
      const unusual = mostUnusual();
      say(`Point decoded. ${unusual}`);
    }
  }

  // --- decode ---

  function showPoint(nearest = -1) {
    if (!state.point) return;
    state.decoded = answers.decode(model, state.point);
    byId("point-empty").hidden = true;
    byId("point-found").hidden = false;
    byId("point-where").textContent = `At ${Array.from(state.point, (v, q) => `dimension ${q + 1}: ${number(v, 2)}`).join(", ")}.`;
    groupBars(byId("point-groups"), groupsAt(state.point));
    valueList.render(byId("point-values"), model, state.decoded, everyone, { sort: byId("point-sort").value, query: byId("point-search").value });
    showRow(nearest);
  }

  // Groups at a position that is known exactly.
  function groupsAt(x) {
    if (model.groups) return answers.memberships(model.groups, x, new Float64Array(model.Q));
    if (!model.prior) return [];
    return answers.priorShares(model, x);
  }

  function mostUnusual() {
    const ranked = state.decoded.map((gap, d) => ({ d, change: sets.fromAverage(model.columns[d], gap, everyone[d]) })).sort((a, b) => Math.abs(b.change.size) - Math.abs(a.change.size));
    return ranked.slice(0, 3).map(({ d, change }) => `${printable(model.columns[d].name)}: ${valueList.differenceWords(model.columns[d], change)}`).join("; ");
  }

  // Only in pages that hold rows: the row under the pointer, and its cells.
  function showRow(nearest) {
    if (!rows) return;
    const target = byId("point-row");
    if (nearest < 0) return dom.show(target, el("p", { class: "soft" }, "No patient lies exactly here."));
    const cells = model.columns.map((column, d) => [printable(column.name), rows.cells[d][nearest]]).filter(([, cell]) => cell !== null);
    dom.show(target, el("details", {}, el("summary", {}, `Row ${rows.number[nearest]} of the table`), el("dl", {}, cells.flatMap(([name, cell]) => [el("dt", {}, name), el("dd", {}, cell)]))));
  }

  function groupBars(target, shares) {
    const names = model.groups && shares.length > groupNames.length && shares[shares.length - 1] >= 0.005 ? [...groupNames, "Outliers"] : groupNames;
    dom.show(target, names.length < 2 && !names.length ? "" : names.map((name, k) => el("li", {}, symbol(k < groupNames.length ? k + 1 : 0), el("span", { class: "who" }, name),
      svg("svg", { class: "rail", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "rail", width: 100, height: 8 }), svg("rect", { fill: groupColour(k < groupNames.length ? k + 1 : 0), width: 100 * shares[k], height: 8 })),
      el("strong", {}, percent(shares[k])))));
  }

  // --- place ---

  const patientForm = form.create(byId("form-fields"), model, everyone, () => schedule());
  let scheduled = false;
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; placePatient(); });
  }

  function placePatient() {
    const { row, given, nGiven } = patientForm.read(), started = performance.now();
    if (!nGiven) return clearPlaced();
    const placed = answers.place(model, row);
    Object.assign(placed, { S: trained.covariance(placed.q, model.Q), groupNames: [...groupNames, "Outliers"], row });
    Object.assign(state, { placed, given });
    map.state.placed = placed;
    map.draw();
    showPlaced(nGiven);
    state.took = performance.now() - started;
    const turn = ++state.told;
    setTimeout(() => { if (turn === state.told) tellNext(row, placed); }, 30);
  }

  function clearPlaced() {
    Object.assign(state, { placed: null, given: null });
    map.state.placed = null;
    map.draw();
    byId("placed").hidden = true;
    byId("placed-empty").hidden = false;
    say("No answers: nobody is placed.");
  }

  function showPlaced(nGiven) {
    const { placed } = state;
    byId("placed").hidden = false;
    byId("placed-empty").hidden = true;
    byId("placed-where").textContent = `${nGiven} of ${model.columns.length} columns given. `
      + `Typical uncertainty of the position: ${number(Math.exp(trained.logDet(placed.q, model.Q) / model.Q), 2)} (1 if nothing were known).`;
    byId("placed-doubt").hidden = placed.effective >= 2;
    groupBars(byId("placed-groups"), placed.groups);
    showPlacedValues();
  }

  const showPlacedValues = () => state.placed && valueList.render(byId("placed-values"), model, state.placed.gaps, everyone, { sort: byId("placed-sort").value, query: byId("form-search").value });

  // Which measurement would tell most next.
  function tellNext(row, placed) {
    const gaps = model.columns.map((_, d) => d).filter((d) => placed.gaps[d]);
    const ranked = answers.information(model, row, placed, gaps).sort((a, b) => b.gain - a.gain).slice(0, 5).filter(({ gain }) => gain > 0.0005);
    dom.show(byId("next"), ranked.length ? ranked.map(({ d, gain }) => el("li", {}, el("button", { type: "button", onclick: () => patientForm.focus(d) }, printable(model.columns[d].name)),
      ` would shrink the uncertainty by about ${percent(gain)}`)) : el("li", {}, "No further measurement would tell much."));
    const top = placed.groups.indexOf(Math.max(...placed.groups)), likely = placed.groups.length ? ` Most probable: ${placed.groupNames[top]}, ${percent(placed.groups[top])}.` : "";
    say(`Placed.${likely}${ranked.length ? ` ${printable(model.columns[ranked[0].d].name)} would tell most next.` : ""}`);
    document.documentElement.dataset.placed = String(state.told);
  }

  // --- compare ---

  const letters = ["A", "B"];
  const sizeOf = (set) => set.members.reduce((sum, i) => sum + (points.count ? points.count[i] : 1), 0);

  function lassoed(members, outline) {
    if (takeSet(state.nextSet, { members, outline, name: "selected on the map", group: null })) state.nextSet = 1 - state.nextSet;
    openTab("compare", false);
  }

  // Whether the set was taken: one that is too small is not.
  function takeSet(place, set) {
    if (set && sizeOf(set) < facts.min_region) {
      byId("compare-note").textContent = `Fewer than ${facts.min_region} patients: a set so small is not described. Select more.`;
      say(byId("compare-note").textContent);
      return false;
    }
    byId("compare-note").textContent = "";
    state.sets[place] = set && { ...set, label: letters[place], summary: sets.summarise(model, set.members.map((i) => points.x[i])) };
    map.state.sets = state.sets.filter(Boolean);
    map.draw();
    if (set && set.outline) byId(`set-${place}`).value = "lasso";
    showCompare();
    return true;
  }

  // Members and name of what a list of sets offers; `group` finds its outcome curve, 0 for everyone.
  function offered(value, other) {
    const all = Array.from({ length: points.n }, (_, i) => i), group = Number(value);
    if (value === "all") return { members: all, name: "everyone", group: 0 };
    if (value === "rest") {
      const taken = new Set(other ? other.members : []);
      return { members: all.filter((i) => !taken.has(i)), name: "everyone else", group: null };
    }
    return { members: all.filter((i) => points.group[i] === group), name: groupNames[group - 1], group };
  }

  function chooseSet(place, value) {
    if (value === "lasso") {
      setMode("lasso");
      state.nextSet = place;
    } else takeSet(place, value === "" ? null : { ...offered(value, state.sets[1 - place]), outline: null });
  }

  function showCompare(all = false) {
    const [a, b] = state.sets, found = byId("compare-found");
    letters.forEach((letter, k) => { byId(`set-${k}-size`).textContent = state.sets[k] ? `${letter}: ${state.sets[k].name}, ${sizeOf(state.sets[k]).toLocaleString("en-US")} patients` : ""; });
    found.hidden = !(a && b);
    if (!a || !b) return;
    const left = comparison.render(byId("compare-list"), model, a.summary, b.summary, everyone, all);
    dom.show(byId("compare-more"), left > 0 ? el("button", { type: "button", onclick: () => showCompare(true) }, `Show the other ${left} columns`) : "");
    const shown = state.sets.map((set, k) => ({ set: k ? "set-b" : "set-a", name: `${letters[k]} (${set.name})`, curve: content.survival.find(({ group }) => group === (set.group ?? -1)) }));
    if (content.survival.length && shown.every(({ curve }) => curve)) comparison.curves(byId("compare-outcome"), shown, facts.time);
    else dom.show(byId("compare-outcome"), content.survival.length ? el("p", { class: "soft" }, `Outcome curves are shown for ${facts.groups} and for everyone, as the study computed them.`) : "");
    say(`A and B compared: ${byId("compare-list").querySelector(".name")?.textContent ?? "nothing"} differs most.`);
  }

  // --- tabs and controls ---

  function openTab(name, focus) {
    state.tab = name;
    for (const tab of TABS) {
      const chosen = tab === name, button = byId(`tab-${tab}`);
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      byId(`panel-${tab}`).hidden = !chosen;
      if (chosen && focus) button.focus();
    }
    if (name === "explain" && !state.explained) {
      state.explained = true;
      explaining.render(byId("dimensions"), model, content.explain, everyone);
    }
    later();
  }

  function setMode(mode) {
    map.state.mode = mode;
    for (const name of ["look", "lasso"]) byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
    byId("map").classList.toggle("lassoing", mode === "lasso");
  }

  function wire() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    for (const tab of TABS) on(`tab-${tab}`, "click", () => openTab(tab, false));
    on("tabs", "keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], at = TABS.indexOf(state.tab);
      if (step) openTab(TABS[(at + step + TABS.length) % TABS.length], true);
    });
    byId("plane").append(...views.map(({ name }, k) => el("option", { value: k }, name)));
    byId("colour").append(...choices.map(({ label, column }, k) => el("option", { value: k }, column === undefined ? label : `Prediction: ${label}`)));
    on("plane", "change", (event) => map.setPlane(Number(event.target.value)));
    on("colour", "change", (event) => { recolour(Number(event.target.value)); later(); });
    on("contours", "change", (event) => { map.state.contours = event.target.checked; map.draw(); });
    on("mode-look", "click", () => setMode("look"));
    on("mode-lasso", "click", () => setMode("lasso"));
    on("zoom-in", "click", () => map.zoom(1.4));
    on("zoom-out", "click", () => map.zoom(1 / 1.4));
    on("zoom-all", "click", () => map.reset());
    for (const id of ["point-sort", "point-search"]) on(id, "input", () => showPoint());
    on("placed-sort", "change", showPlacedValues);
    on("form-search", "input", (event) => { patientForm.filter(event.target.value); showPlacedValues(); });
    on("clear", "click", () => { patientForm.clear(); schedule(); });
    wireSets(on);
    wireExports(on);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.draw());
  }

  function wireSets(on) {
    [0, 1].forEach((k) => {
      const options = groupNames.map((name, g) => el("option", { value: g + 1 }, name));
      byId(`set-${k}`).append(el("option", { value: "" }, "choose"), ...options, el("option", { value: "all" }, "everyone"), el("option", { value: "rest" }, "everyone else"), el("option", { value: "lasso" }, "select on the map"));
      on(`set-${k}`, "change", (event) => chooseSet(k, event.target.value));
    });
  }

  function wireExports(on) {
    const saved = () => sharing.patient(model, state.given, state.placed);
    on("save-csv", "click", () => dom.download("patient.csv", "text/csv", sharing.patientCsv(saved())));
    on("save-json", "click", () => dom.download("patient.json", "application/json", JSON.stringify(saved(), null, 1)));
    on("save-png", "click", () => { map.paint(); byId("map").toBlob((blob) => dom.download("map.png", "image/png", blob)); });
    on("save-svg", "click", () => {
      const legend = choices[state.colour]?.groups ? groupNames.map((name, k) => ({ name, colour: groupColour(k + 1) })) : [{ name: choices[state.colour]?.label ?? "", colour: "#1c2430" }];
      dom.download("map.svg", "image/svg+xml", sharing.viewSvg(map.drawn(), legend));
    });
  }

  function start() {
    wire();
    map.setPlane(0);
    const asked = sharing.readAddress(views.length, choices.length, TABS, model.Q);
    if (asked) {
      map.setPlane(asked.plane);
      byId("plane").value = asked.plane;
      if (asked.view) Object.assign(map.state, asked.view);
      if (asked.point) { state.point = asked.point; map.state.point = { x: asked.point, place: views[asked.plane].flat(asked.point) }; showPoint(); }
      openTab(asked.tab, false);
    } else openTab("place", false);
    byId("colour").value = asked ? asked.colour : 0;
    recolour(asked ? asked.colour : 0);
    document.documentElement.dataset.ready = "yes";
  }

  // For tests and for people who want to script the page.
  window.explorer = { model, points, map, state, place: (given) => { const { row, errors } = coding.readRow(model, given); return { ...answers.place(model, row), errors }; } };
  start();
})();
