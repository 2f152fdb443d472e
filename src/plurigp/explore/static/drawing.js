"use strict";
// Points as pixels: a hundred thousand of them are stamped into an image faster than a frame takes, without a graphics card.
const drawing = (() => {
  const OPACITY = 0.78;
  const VIRIDIS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
  const SHAPES = [
    (x, y) => x * x + y * y <= 1, // circle
    (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.85, // square
    (x, y) => Math.abs(x) + Math.abs(y) <= 1.15, // diamond
    (x, y) => y <= 0.75 && y >= 2 * Math.abs(x) - 1, // triangle, point upwards
    (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.35 && Math.max(Math.abs(x), Math.abs(y)) <= 1, // cross
    (x, y) => y >= -0.75 && -y >= 2 * Math.abs(x) - 1, // triangle, point downwards
  ];

  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  // A colour of the scale at u from 0 to 1.
  function scaleColour(u) {
    const place = Math.min(Math.max(u, 0), 1) * (VIRIDIS.length - 1),
      low = Math.min(Math.floor(place), VIRIDIS.length - 2);
    const [a, b] = [parse(VIRIDIS[low]), parse(VIRIDIS[low + 1])];
    return a.map((value, k) => Math.round(value + (place - low) * (b[k] - value)));
  }
  const gradient = `linear-gradient(to right, ${VIRIDIS.join(", ")})`;

  // A shape's pixels for a radius: their offsets, and the share of each that it covers.
  const stamps = new Map();
  function stamp(shape, radius) {
    const key = shape * 1024 + 2 * radius;
    if (!stamps.has(key)) {
      const pixels = [],
        reach = Math.ceil(radius * 1.2),
        inside = SHAPES[shape % SHAPES.length];
      for (let y = -reach; y <= reach; y++)
        for (let x = -reach; x <= reach; x++) {
          let covered = 0;
          for (const sub of [
            [-0.25, -0.25],
            [0.25, -0.25],
            [-0.25, 0.25],
            [0.25, 0.25],
          ]) {
            if (inside((x + sub[0]) / radius, (y + sub[1]) / radius)) covered += 0.25;
          }
          if (covered > 0) pixels.push([x, y, covered * OPACITY]);
        }
      const [dx, dy] = [0, 1].map((k) => Int32Array.from(pixels, (pixel) => pixel[k]));
      stamps.set(key, { reach, dx, dy, over: Float64Array.from(pixels, (pixel) => pixel[2]) });
    }
    return stamps.get(key);
  }

  // Stamp points at pixel places (xs, ys) with colours [3 n], shapes [n] and radii [n] into an image of RGBA bytes.
  function stampAll(image, xs, ys, colours, shapes, radii) {
    const { data, width, height } = image;
    for (let i = 0; i < xs.length; i++) {
      const cx = Math.round(xs[i]),
        cy = Math.round(ys[i]),
        { reach, dx, dy, over } = stamp(shapes[i], radii[i]);
      if (!(cx >= -reach && cy >= -reach && cx < width + reach && cy < height + reach)) continue;
      const r = colours[3 * i],
        g = colours[3 * i + 1],
        b = colours[3 * i + 2];
      const whole = cx >= reach && cy >= reach && cx < width - reach && cy < height - reach;
      for (let k = 0; k < over.length; k++) {
        const x = cx + dx[k],
          y = cy + dy[k];
        if (!whole && (x < 0 || y < 0 || x >= width || y >= height)) continue;
        const at = 4 * (y * width + x),
          under = 1 - over[k];
        data[at] = r * over[k] + data[at] * under;
        data[at + 1] = g * over[k] + data[at + 1] * under;
        data[at + 2] = b * over[k] + data[at + 2] * under;
      }
    }
  }

  // The same shapes as an SVG path around (0, 0).
  const PATHS = [
    (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    (r) => `M${-0.85 * r} ${-0.85 * r}h${1.7 * r}v${1.7 * r}h${-1.7 * r}Z`,
    (r) => `M0 ${-1.15 * r}L${1.15 * r} 0L0 ${1.15 * r}L${-1.15 * r} 0Z`,
    (r) => `M0 ${-r}L${0.87 * r} ${0.75 * r}H${-0.87 * r}Z`,
    (r) =>
      `M${-r} ${-0.35 * r}H${-0.35 * r}V${-r}H${0.35 * r}V${-0.35 * r}H${r}V${0.35 * r}H${0.35 * r}V${r}H${-0.35 * r}V${0.35 * r}H${-r}Z`,
    (r) => `M0 ${r}L${0.87 * r} ${-0.75 * r}H${-0.87 * r}Z`,
  ];
  const shapePath = (shape, radius) => PATHS[shape % PATHS.length](radius);

  return { parse, scaleColour, gradient, stampAll, shapePath };
})();
