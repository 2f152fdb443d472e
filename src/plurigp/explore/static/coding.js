"use strict";
// From what is typed to coded numbers and back, as plurigp/data has it. Raw numbers of a cell are a list: one number, lower and
// upper bound, or successes and trials.
const coding = (() => {
  const { roundEven } = special;
  const NUMBER = /^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$/;
  const N = "(?:(?:0|[1-9][0-9]*)(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?";
  const ONE_SIDE = new RegExp(`^\\s*(<=|>=|<|>|≤|≥)\\s*([+-]?${N})\\s*$`);
  const BETWEEN = new RegExp(`^\\s*([+-]?${N})\\s*(?:-|–|to)\\s*([+-]?${N})\\s*$`);
  const MAX_DEVIATIONS = 1e9,
    SMALLEST = 1e-30,
    LARGEST = 1e30,
    MARGIN = 1e-6,
    MAX_MAGNITUDE = 1e100;
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);

  // --- reading ---

  // Lower and upper bound that a text spells, equal for a plain number; null where it spells neither.
  function boundsOf(text) {
    if (NUMBER.test(text)) return [Number(text), Number(text)];
    const one = ONE_SIDE.exec(text),
      between = BETWEEN.exec(text);
    if (one) return "<=≤".includes(one[1]) ? [-Infinity, Number(one[2])] : [Number(one[2]), Infinity];
    return between && Number(between[1]) < Number(between[2]) ? [Number(between[1]), Number(between[2])] : null;
  }

  const DOMAINS = {
    positive: { outside: (raw) => raw[raw.length - 1] <= 0, remedy: "Enter a number above zero." },
    "not negative": { outside: (raw) => raw[0] < 0, remedy: "Enter a number from zero up." },
    count: { outside: (raw) => raw[0] < 0 || raw[0] !== Math.floor(raw[0]), remedy: "Enter a whole number from 0 up." },
  };

  // What a text means in this column: {raw}, {} where it is empty, or {error} with the remedy. `trials` is asked where needed.
  function parse(column, text, trials = "") {
    if (text.trim() === "") return {};
    const bounds = boundsOf(text);
    if (!bounds)
      return { error: column.has_bounds ? "Enter a number or a limit such as <5, >5 or 1-3." : "Enter a number." };
    if (!column.has_bounds && bounds[0] !== bounds[1]) return { error: "This column takes plain numbers, no limits." };
    if (bounds.some((bound) => Number.isFinite(bound) && Math.abs(bound) > MAX_MAGNITUDE))
      return { error: "This number is too large." };
    const raw = rawOf(column, bounds, trials);
    return raw.error ? raw : { raw };
  }

  function rawOf(column, [low, high], trials) {
    const positive = column.domain === "positive";
    let raw = column.has_bounds ? [positive ? Math.max(low, 0) : low, high] : [low];
    if (column.domain && DOMAINS[column.domain].outside(raw)) return { error: DOMAINS[column.domain].remedy };
    if (column.trials) {
      const most = typeof column.trials === "number" ? column.trials : Number(trials);
      if (
        !NUMBER.test(String(most)) ||
        most !== Math.floor(most) ||
        most < 0 ||
        (trials === "" && typeof column.trials !== "number")
      )
        return { error: "Enter the number of trials as well." };
      if (low > most) return { error: "There are more successes than trials." };
      raw = [low, most];
    }
    if (column.range && (low < column.range[0] || low > column.range[1]))
      return { error: `Enter a number from ${column.range[0]} to ${column.range[1]}.` };
    const coded = code(column, raw);
    return Math.abs(coded[0]) > MAX_DEVIATIONS && Number.isFinite(raw[0])
      ? { error: "This is far from every value seen." }
      : raw;
  }

  // --- coding: the functions `code` of plurigp/data/kinds.py by their names ---

  const inUnits = (value, { scale }) => clip(value / scale, SMALLEST, LARGEST);
  const logUnit = (raw, { scale }) => (raw[0] === raw[1] ? Math.log(scale) : 0);
  const CODES = {
    same: (raw) => raw,
    read_levels: (raw) => raw,
    standardise: (raw, { shift, scale }) => [(raw[0] - shift) / scale],
    in_units: (raw, units) => [inUnits(raw[0], units)],
    amounts_in_units: (raw, units) => (raw[0] > 0 ? [inUnits(raw[0], units), Math.log(units.scale)] : [raw[0], 0]),
    standardise_bounds: (raw, units) => [
      ...raw.map((bound) =>
        Number.isFinite(bound) ? (bound - units.shift) / units.scale : Math.sign(bound) * MAX_DEVIATIONS,
      ),
      logUnit(raw, units),
    ],
    bounds_in_units: (raw, units) => [inUnits(raw[0], units), inUnits(raw[1], units), logUnit(raw, units)],
    squeeze([value], { shift, scale, squeeze }) {
      const y = (value - shift) / scale;
      return [clip(squeeze ? (y * (squeeze - 1) + 0.5) / squeeze : y, MARGIN, 1 - MARGIN)];
    },
    proportions_and_ends([value], { shift, scale }) {
      const y = clip((value - shift) / scale, 0, 1),
        inside = y > 0 && y < 1;
      return [inside ? clip(y, MARGIN, 1 - MARGIN) : y, inside ? Math.log(scale) : 0];
    },
  };
  const code = (column, raw) => CODES[column.coding](raw, column.units);

  // --- decoding ---

  const plain = (coded, { shift, scale }) => shift + scale * coded;
  const count = (coded) => Math.max(roundEven(coded), 0);
  function unsqueeze(coded, { shift, scale, squeeze }) {
    const y = clip(squeeze ? (coded * squeeze - 0.5) / (squeeze - 1) : coded, 0, 1);
    return clip(shift + scale * y, shift, shift + scale);
  }
  const DECODES = { unstandardise: plain, nearest_count: count, unsqueeze };
  const decode = (column, coded) => DECODES[column.decoding](coded, column.units);
  // An expected count is no count.
  const decodeExactly = (column, coded) => (column.decoding === "nearest_count" ? coded : decode(column, coded));

  // --- rows ---

  // A raw number as the raw numbers of a cell of this column; `slots` knows the trials.
  function raw(column, value, slots) {
    if (column.has_bounds) return [value, value];
    return column.trials ? [Math.min(value, slots[1]), slots[1]] : [value];
  }

  // A row without a cell; a fixed number of trials is known all the same.
  function emptyRow(model) {
    const values = model.columns.map(({ trials, stand_in }) =>
      typeof trials === "number" ? [stand_in[0], trials] : [...stand_in],
    );
    return { values, seen: model.columns.map(() => false) };
  }

  // A row from answers by column: a place among the levels, or a text and the text of its trials. {row, errors by column}.
  function readRow(model, given) {
    const row = emptyRow(model),
      errors = {};
    model.columns.forEach((column, d) => {
      const answer = given[d];
      if (answer === undefined || answer === null) return;
      if (column.levels) {
        [row.values[d], row.seen[d]] = [[answer.level], true];
        return;
      }
      const parsed = parse(column, answer.text, answer.trials);
      if (parsed.error) errors[d] = parsed.error;
      else if (parsed.raw) [row.values[d], row.seen[d]] = [code(column, parsed.raw), true];
    });
    return { row, errors };
  }

  return { CODES, DECODES, DOMAINS, parse, code, decode, decodeExactly, raw, emptyRow, readRow };
})();
