"use strict";
(() => {
  const NARROW = 560;
  const PAPER = 680;  // a figure's width in print
  const root = document.documentElement;
  const plots = [];

  const read = (name) => JSON.parse(document.getElementById(`figure-${name}`).textContent);
  const token = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const cut = (text, most) => {
    const letters = text.match(/&[a-z]+;|&#\d+;|[^]/gu) || [];  // an entity is one letter
    const head = Math.ceil(most / 2);  // both ends: long names often differ in their last word
    return letters.length > most ? [...letters.slice(0, head), "…", ...letters.slice(head + 1 - most)].join("") : text;
  };

  const axesOf = (layout) => [...new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))])];

  // Colours of the page and, on a narrow screen, shorter names and a smaller type.
  function dressed(layout, width, printing) {
    const narrow = width < NARROW;
    const ink = printing ? "#1c2430" : token("--ink"), grid = printing ? "#e3e7ec" : token("--grid");
    const dress = { autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", ...layout,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "#8a8f98", activecolor: ink },
      font: { color: ink, size: narrow ? 11 : 13, family: 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif' } };
    for (const side of axesOf(layout)) {
      const axis = { gridcolor: grid, linecolor: grid, ...layout[side] };
      if (axis.title) axis.title = { standoff: 12, ...axis.title, font: { size: narrow ? 11 : 13 } };
      if (axis.ticktext && narrow) axis.ticktext = axis.ticktext.map((text) => cut(text, 17));
      dress[side] = axis;
    }
    return dress;
  }

  const options = {
    responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" },
  };

  function draw(figure) {
    const box = figure.querySelector(".plot"), name = figure.dataset.figure, content = read(name);
    const settings = { ...options, toImageButtonOptions: { format: "svg", filename: name } };
    plots.push({ box, content });
    box.style.height = `${content.height}px`;
    return Plotly.newPlot(box, content.data, dressed(content.layout, box.clientWidth, false), settings).then(() => {
      figure.dataset.drawn = "yes";
      if (content.choices) fillMenu(figure, box, content);
    });
  }

  // The map's colour-by menu.
  function fillMenu(figure, box, content) {
    const menu = document.getElementById("colour-by");
    content.choices.forEach((choice, place) => menu.add(new Option(choice.label, String(place))));
    menu.addEventListener("change", () => {
      const { label, values, coloraxis } = content.choices[Number(menu.value)];
      const data = values ? content.data.flatMap((trace, place) => scaled(trace, values[place])) : content.data;
      const layout = values ? { ...content.layout, coloraxis, margin: { ...content.layout.margin, b: 80 } } : content.layout;
      Plotly.react(box, data, dressed(layout, box.clientWidth, false)).then(() => { figure.dataset.colour = label; });
    });
  }

  // A trace on the colour scale, and its symbol in grey for the legend.
  function scaled(trace, values) {
    const grey = { type: "scatter", mode: "markers", name: trace.name, legendgroup: trace.name, legendrank: trace.legendrank,
      x: [null], y: [null], marker: { ...trace.marker, color: "#8a8f98" } };
    const marker = { ...trace.marker, color: values, coloraxis: "coloraxis" };
    return [{ ...trace, marker, showlegend: false, legendgroup: trace.name }, grey];
  }

  // Tables: sort by a column's plain values, show one subtype.
  function sortBy(head) {
    const table = head.closest("table"), body = table.tBodies[0], place = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const number = head.classList.contains("number");
    const value = (row) => (number ? Number(row.cells[place].dataset.sort) : row.cells[place].dataset.sort);
    const compare = number ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
    const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a), value(b)));
    body.append(...rows);
  }

  function watchTables() {
    for (const button of document.querySelectorAll("th button")) {
      button.addEventListener("click", () => sortBy(button.closest("th")));
    }
    for (const menu of document.querySelectorAll("select[data-table]")) {
      menu.addEventListener("change", () => {
        for (const row of document.getElementById(menu.dataset.table).tBodies[0].rows) {
          row.hidden = menu.value !== "" && row.dataset.group !== menu.value;
        }
      });
    }
  }

  function redress(printing) {
    for (const { box, content } of plots) {
      const dress = dressed(content.layout, printing ? PAPER : box.clientWidth, printing);
      const axes = axesOf(content.layout).flatMap((side) => [[`${side}.gridcolor`, dress[side].gridcolor], [`${side}.ticktext`, dress[side].ticktext]]);
      Plotly.relayout(box, { width: printing ? PAPER : null, autosize: !printing, "font.color": dress.font.color, "font.size": dress.font.size, ...Object.fromEntries(axes) });
    }
  }

  addEventListener("beforeprint", () => redress(true));
  addEventListener("afterprint", () => redress(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redress(false));
  matchMedia(`(max-width: ${NARROW}px)`).addEventListener("change", () => redress(false));

  watchTables();
  Promise.all([...document.querySelectorAll("figure[data-figure]")].map(draw)).then(() => { root.dataset.ready = "yes"; });
})();
