"use strict";
// Elements and numbers for people. Names come from tables: they reach the page as text nodes only.
const dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const show = (element, ...children) => element.replaceChildren(...children.flat().filter(Boolean));

  // One line of a text from the table: control characters and direction marks as escapes, long ones cut.
  function printable(text, most = 80) {
    const line = String(text).replace(
      /[\p{C}\p{Zl}\p{Zp}]/gu,
      (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`,
    );
    return line.length > most ? `${line.slice(0, most - 1)}…` : line;
  }

  // Three significant digits, thousands separated, an exponent only where it is needed.
  function number(value, digits = 3) {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(digits - 1).replace("-", "−");
    const decimals = size === 0 ? 0 : Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 6);
    const text = value.toLocaleString("en-US", { maximumFractionDigits: decimals });
    return text.replace("-", "−").replace(/^−0$/, "0");
  }

  function percent(share) {
    if (!Number.isFinite(share)) return "–";
    if (share > 0 && share < 0.005) return "<1%";
    return share < 1 && share > 0.995 ? ">99%" : `${Math.round(100 * share)}%`;
  }

  const count = (whole) => whole.toLocaleString("en-US");
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function download(name, type, content) {
    const address = URL.createObjectURL(new Blob([content], { type }));
    const link = el("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // Said to screen readers, and shown where `visible`.
  function say(text) {
    byId("status").textContent = text;
  }

  return { byId, el, svg, show, printable, number, percent, count, token, download, say };
})();
