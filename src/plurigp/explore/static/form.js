"use strict";
// The form of a patient, made from the schema. Answers stay in this page.
const form = (() => {
  const { el, number, printable } = dom;
  const UNKNOWN = "";

  // What an empty field says: the range of most patients.
  function placeholder(everyone) {
    return everyone.sorted
      ? `${number(answers.quantile(everyone.sorted, 0.05))} to ${number(answers.quantile(everyone.sorted, 0.95))}`
      : "";
  }

  function hint(column) {
    if (column.event) return "a time, or >12 if it has not happened by then";
    if (column.has_bounds) return "a number or a limit: <5, >5, 1-3";
    if (column.range) return `from ${column.range[0]} to ${column.range[1]}`;
    if (typeof column.trials === "number") return `out of ${column.trials}`;
    return column.label;
  }

  // One field; `changed` is called with every keystroke.
  function field(column, d, everyone, changed) {
    const id = `field-${d}`,
      error = el("p", { class: "error", id: `${id}-error` });
    const label = el("label", { for: id }, printable(column.name)),
      about = el("span", { class: "hint", id: `${id}-hint` }, hint(column));
    const described = { id, "aria-describedby": `${id}-hint ${id}-error`, "data-column": d };
    if (column.levels) {
      const options = column.levels.map((level, k) => el("option", { value: k }, printable(level, 60)));
      const select = el(
        "select",
        { ...described, onchange: changed },
        el("option", { value: UNKNOWN }, "unknown"),
        options,
      );
      return { input: select, box: el("div", { class: "field" }, label, about, select, error), error };
    }
    const input = el("input", {
      ...described,
      type: "text",
      inputmode: column.has_bounds ? "text" : "decimal",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: placeholder(everyone),
      oninput: changed,
    });
    const trials =
      typeof column.trials === "string"
        ? el("input", {
            id: `${id}-trials`,
            type: "text",
            inputmode: "numeric",
            autocomplete: "off",
            placeholder: "out of",
            "aria-label": `${printable(column.name)}: ${printable(column.trials)}`,
            oninput: changed,
          })
        : null;
    return {
      input,
      trials,
      box: el("div", { class: "field" }, label, about, el("div", { class: "inputs" }, input, trials), error),
      error,
    };
  }

  // The whole form: {read() -> {row, given, nGiven}, clear(), set(d, answer)}.
  function create(target, model, everyone, changed) {
    const fields = model.columns.map((column, d) => field(column, d, everyone[d], changed));
    dom.show(
      target,
      fields.map(({ box }) => box),
    );

    function given() {
      return model.columns.map((column, d) => {
        const { input, trials } = fields[d];
        if (input.value === UNKNOWN) return null;
        return column.levels
          ? { level: Number(input.value) }
          : { text: input.value, trials: trials ? trials.value : "" };
      });
    }

    function read() {
      const answers_ = given(),
        { row, errors } = coding.readRow(model, answers_);
      fields.forEach(({ input, error }, d) => {
        error.textContent = errors[d] || "";
        input.setAttribute("aria-invalid", String(d in errors));
      });
      return { row, given: answers_, nGiven: row.seen.filter(Boolean).length };
    }

    function set(d, answer) {
      const { input, trials } = fields[d];
      input.value = answer ? (answer.text ?? String(answer.level)) : UNKNOWN;
      if (trials) trials.value = answer?.trials ?? "";
    }

    function filter(query) {
      const wanted = query.trim().toLowerCase();
      fields.forEach(({ box }, d) => {
        box.hidden = !String(model.columns[d].name).toLowerCase().includes(wanted);
      });
    }

    return {
      read,
      set,
      filter,
      clear: () => fields.forEach((_, d) => set(d, null)),
      focus: (d) => fields[d].input.focus(),
    };
  }

  return { create };
})();
