"use strict";
// The page put together: the map, the tabs, and what each action leads to.
(() => {
  const { byId, el, say } = dom;
  const { model, points, views, everyone, explain } = world;
  const TABS = ["place", "point", "compare", "explain"],
    ADDRESS_DELAY = 250;
  const state = { tab: TABS[0], colour: 0, explained: false };
  let timer = 0;

  const map = atlas.create(byId("map"), points, views, { picked, lassoed, moved: rememberView });

  // The view goes into the address a moment after the last change.
  function rememberView() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const { plane, centre, scale } = map.state;
      sharing.writeAddress({
        plane,
        centre,
        scale,
        colour: state.colour,
        tab: state.tab,
        point: pointPanel.state.point,
      });
    }, ADDRESS_DELAY);
  }

  function picked(x, moving, nearest) {
    pointPanel.show(x, nearest);
    if (moving) return;
    openTab("point", false);
    say(`Point decoded. ${pointPanel.inWords()}`);
  }

  function lassoed(members, outline) {
    openTab("compare", false);
    comparePanel.lassoed(members, outline);
  }

  placePanel.whenPlaced((placed) => {
    map.state.placed = placed;
    map.draw();
  });
  comparePanel.listen({
    lasso: () => setMode("lasso"),
    drawn: (sets_) => {
      map.state.sets = sets_;
      map.draw();
    },
  });

  function openTab(name, focus) {
    state.tab = name;
    for (const tab of TABS) {
      const chosen = tab === name,
        button = byId(`tab-${tab}`);
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      byId(`panel-${tab}`).hidden = !chosen;
      if (chosen && focus) button.focus();
    }
    if (name === "explain" && !state.explained) {
      state.explained = true;
      explaining.render(byId("dimensions"), model, explain, everyone);
    }
    rememberView();
  }

  function setMode(mode) {
    map.state.mode = mode;
    for (const name of ["look", "lasso"]) byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
    byId("map").classList.toggle("lassoing", mode === "lasso");
  }

  function recolour(place) {
    state.colour = place;
    colouring.apply(place, map.state);
    map.draw();
    rememberView();
  }

  function wire() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    for (const tab of TABS) on(`tab-${tab}`, "click", () => openTab(tab, false));
    on("tabs", "keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key],
        at = TABS.indexOf(state.tab);
      if (step) openTab(TABS[(at + step + TABS.length) % TABS.length], true);
    });
    on("plane", "change", (event) => map.setPlane(Number(event.target.value)));
    on("colour", "change", (event) => recolour(Number(event.target.value)));
    on("contours", "change", (event) => {
      map.state.contours = event.target.checked;
      map.draw();
    });
    on("mode-look", "click", () => setMode("look"));
    on("mode-lasso", "click", () => setMode("lasso"));
    on("zoom-in", "click", () => map.zoom(1.4));
    on("zoom-out", "click", () => map.zoom(1 / 1.4));
    on("zoom-all", "click", () => map.reset());
    on("save-svg", "click", () => {
      const drawn = sharing.viewSvg(map.drawn(), colouring.entries(state.colour));
      dom.download("map.svg", "image/svg+xml", drawn);
    });
    on("save-png", "click", () => {
      map.paint();
      byId("map").toBlob((blob) => dom.download("map.png", "image/png", blob));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.draw());
    matchMedia("print").addEventListener("change", () => map.paint()); // at once: paper waits for no frame
  }

  function fillMenus() {
    const named = ({ label, column }) => (column ? `Prediction: ${label}` : label);
    byId("plane").append(...views.map(({ name }, k) => el("option", { value: k }, name)));
    byId("colour").append(...colouring.choices.map((choice, k) => el("option", { value: k }, named(choice))));
  }

  // As the address asks, where it asks for something.
  function start() {
    const asked = sharing.readAddress(views.length, colouring.choices.length, TABS, model.Q);
    const { plane, colour, tab, view, point } = asked ?? { plane: 0, colour: 0, tab: TABS[0] };
    fillMenus();
    wire();
    map.setPlane(plane);
    if (view) Object.assign(map.state, view);
    if (point) {
      map.state.point = { x: point, place: views[plane].flat(point) };
      pointPanel.show(point);
    }
    byId("plane").value = plane;
    byId("colour").value = colour;
    openTab(tab, false);
    recolour(colour);
    document.documentElement.dataset.ready = "yes";
  }

  // For tests, and for people who want to script the page.
  window.explorer = {
    model,
    points,
    map,
    panels: { place: placePanel.state, point: pointPanel.state, compare: comparePanel.state },
    place: (given, nDraws) => answers.place(model, coding.readRow(model, given).row, nDraws),
  };
  start();
})();
