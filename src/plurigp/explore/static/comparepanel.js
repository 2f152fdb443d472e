"use strict";
// Compare: which two sets are chosen, and their differences.
const comparePanel = (() => {
  const { byId, el, say } = dom;
  const { model, points, everyone, facts, groupNames, survival } = world;
  const LETTERS = ["A", "B"];
  const state = { sets: [null, null], next: 0 };
  let ask = { drawn: () => {}, lasso: () => {} }; // told which sets to draw, and when the lasso is wanted

  const sizeOf = (set) => set.members.reduce((sum, i) => sum + (points.count ? points.count[i] : 1), 0);

  // Whether the set was taken: one that is too small is not.
  function take(place, set) {
    const small = set && sizeOf(set) < facts.min_region;
    const note = small ? `Fewer than ${facts.min_region} patients: a set so small is not described. Select more.` : "";
    byId("compare-note").textContent = note;
    if (small) {
      say(note);
      return false;
    }
    const positions = set ? set.members.map((i) => points.x[i]) : [];
    state.sets[place] = set && { ...set, label: LETTERS[place], summary: sets.summarise(model, positions) };
    if (set && set.outline) byId(`set-${place}`).value = "lasso";
    ask.drawn(state.sets.filter(Boolean));
    show();
    return true;
  }

  // A set drawn on the map: the first is A, the next B.
  function lassoed(members, outline) {
    if (take(state.next, { members, outline, name: "selected on the map", group: null })) state.next = 1 - state.next;
  }

  // Members and name of what a list of sets offers; `group` finds its outcome curve, 0 for everyone.
  function offered(value, other) {
    const all = Array.from({ length: points.n }, (_, i) => i),
      group = Number(value);
    if (value === "all") return { members: all, name: "everyone", group: 0 };
    if (value === "rest") {
      const taken = new Set(other ? other.members : []);
      return { members: all.filter((i) => !taken.has(i)), name: "everyone else", group: null };
    }
    return { members: all.filter((i) => points.group[i] === group), name: groupNames[group - 1], group };
  }

  function choose(place, value) {
    if (value === "lasso") {
      state.next = place;
      ask.lasso();
    } else take(place, value === "" ? null : { ...offered(value, state.sets[1 - place]), outline: null });
  }

  function show(all = false) {
    const [a, b] = state.sets;
    LETTERS.forEach((letter, k) => {
      const set = state.sets[k];
      byId(`set-${k}-size`).textContent = set ? `${letter}: ${set.name}, ${dom.count(sizeOf(set))} patients` : "";
    });
    byId("compare-found").hidden = !(a && b);
    if (!a || !b) return;
    const left = comparison.render(byId("compare-list"), model, a.summary, b.summary, everyone, all);
    const more = el("button", { type: "button", onclick: () => show(true) }, `Show the other ${left} columns`);
    dom.show(byId("compare-more"), left > 0 ? more : "");
    showOutcome();
    say(`A and B compared: ${byId("compare-list").querySelector(".name")?.textContent ?? "nothing"} differs most.`);
  }

  function showOutcome() {
    const target = byId("compare-outcome");
    const shown = state.sets.map((set, k) => ({
      set: k ? "set-b" : "set-a",
      name: `${LETTERS[k]} (${set.name})`,
      curve: survival.find(({ group }) => group === set.group),
    }));
    const words = `Outcome curves are shown for ${facts.groups} and for everyone, as the study computed them.`;
    if (!survival.length) dom.show(target, "");
    else if (shown.every(({ curve }) => curve)) comparison.curves(target, shown, facts.time);
    else dom.show(target, el("p", { class: "soft" }, words));
  }

  [0, 1].forEach((k) => {
    const options = [
      ["", "choose"],
      ...groupNames.map((name, g) => [g + 1, name]),
      ["all", "everyone"],
      ["rest", "everyone else"],
      ["lasso", "select on the map"],
    ];
    byId(`set-${k}`).append(...options.map(([value, name]) => el("option", { value }, name)));
    byId(`set-${k}`).addEventListener("change", (event) => choose(k, event.target.value));
  });

  return {
    state,
    lassoed,
    listen: (told) => {
      ask = told;
    },
  };
})();
