"use strict";
// Marks above the points of the map: contours, outlines of sets, a placed patient, the decoded point, names of the axes.
const marks = (() => {
  const { token } = dom;

  function contours(context, byShare, toPixel) {
    context.strokeStyle = token("--contour");
    context.lineWidth = 1;
    byShare.forEach((lines, k) => {
      context.globalAlpha = 0.35 + 0.15 * k;
      context.beginPath();
      for (const [from, to] of lines) {
        context.moveTo(...toPixel(from));
        context.lineTo(...toPixel(to));
      }
      context.stroke();
    });
    context.globalAlpha = 1;
  }

  // Dark on a lighter line, so that it is seen on any points; B and a line still being drawn are dashed.
  function outline(context, pixels, label) {
    context.setLineDash(label === "A" ? [] : [7, 5]);
    for (const [ink, thick] of [
      [token("--map"), 4.5],
      [token("--ink"), 2],
    ]) {
      context.strokeStyle = ink;
      context.lineWidth = thick;
      context.beginPath();
      pixels.forEach((pixel, i) => (i ? context.lineTo(...pixel) : context.moveTo(...pixel)));
      context.closePath();
      context.stroke();
    }
    context.setLineDash([]);
    const [x, y] = [0, 1].map((k) => Math.min(...pixels.map((pixel) => pixel[k])));
    context.font = "600 16px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 4;
    context.strokeStyle = token("--map");
    context.strokeText(label, x + 12, y - 6);
    context.fillStyle = token("--ink");
    context.fillText(label, x + 12, y - 6);
  }

  // The inner one solid, the outer one dashed, with the position in their middle.
  function ellipses(context, list) {
    context.strokeStyle = context.fillStyle = token("--mark");
    list.forEach(({ x, y, long, short, angle }, k) => {
      context.lineWidth = k ? 1.5 : 2.5;
      context.setLineDash(k ? [5, 4] : []);
      context.beginPath();
      context.ellipse(x, y, long, short, angle, 0, 2 * Math.PI);
      context.stroke();
      context.globalAlpha = 0.1;
      context.fill();
      context.globalAlpha = 1;
    });
    context.setLineDash([]);
    context.beginPath();
    context.arc(list[0].x, list[0].y, 6, 0, 2 * Math.PI);
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = token("--map");
    context.stroke();
  }

  function crosshair(context, [x, y]) {
    for (const [ink, thick] of [
      [token("--map"), 5],
      [token("--ink"), 2],
    ]) {
      context.strokeStyle = ink;
      context.lineWidth = thick;
      context.beginPath();
      context.arc(x, y, 9, 0, 2 * Math.PI);
      for (const [i, j] of [
        [1, 0],
        [-1, 0],
        [0, 1],
        [0, -1],
      ]) {
        context.moveTo(x + 5 * i, y + 5 * j);
        context.lineTo(x + 15 * i, y + 15 * j);
      }
      context.stroke();
    }
  }

  function axisNames(context, [across, up], width, height) {
    context.font = "13px system-ui, sans-serif";
    context.fillStyle = token("--soft");
    context.textAlign = "right";
    context.fillText(`${across} →`, width - 12, height - 10);
    context.save();
    context.translate(18, 12);
    context.rotate(-Math.PI / 2);
    context.fillText(`${up} →`, 0, 0);
    context.restore();
  }

  return { contours, outline, ellipses, crosshair, axisNames };
})();
