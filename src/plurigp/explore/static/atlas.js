"use strict";
// The map: points, contours and marks on a canvas, moved by mouse, touch and keyboard.
const atlas = (() => {
  const { boxOf, insideOutline, contours } = planes;
  const NEAR = 16; // pixels within which a mark is taken hold of
  const NUDGE = 12; // pixels that an arrow key moves
  const CIRCLE = 60; // radius in pixels of the set that a key takes around the point
  const ELLIPSES = [1.51, 2.45]; // 68 % and 95 % of a two-dimensional normal, in sds
  const NARROW = 560; // pixels: a phone
  const CLICK = 4; // pixels that a click may move

  // canvas: where to draw; points, planes: of plane.js; ask: {picked(place, moving), lassoed(members, outline), moved()}.
  function create(canvas, points, planes, ask) {
    const context = canvas.getContext("2d", { willReadFrequently: true }); // pixels are written by us, not by a graphics card
    const state = {
      plane: 0,
      flats: [],
      box: [-3, -3, 3, 3],
      centre: [0, 0],
      scale: 80,
      mode: "look",
      contours: true,
      colours: new Uint8ClampedArray(3 * points.n).fill(110),
      shapes: new Uint8Array(points.n),
      radii: null,
      placed: null,
      point: null,
      sets: [],
      outline: null,
      lines: null,
    };
    const [us, vs, xs, ys] = [0, 1, 2, 3].map(() => new Float64Array(points.n)); // of the points: in the plane, in pixels
    let width = 0,
      height = 0,
      ratio = 1,
      asked = false,
      image = null;

    // --- coordinates ---

    const plane = () => planes[state.plane];
    const toPixel = ([u, v]) => [
      width / 2 + (u - state.centre[0]) * state.scale,
      height / 2 - (v - state.centre[1]) * state.scale,
    ];
    const toPlace = (x, y) => [
      state.centre[0] + (x - width / 2) / state.scale,
      state.centre[1] - (y - height / 2) / state.scale,
    ];

    function setPlane(number) {
      state.plane = number;
      state.flats = points.x.map((x, i) => plane().flat(x, i));
      state.flats.forEach(([u, v], i) => {
        us[i] = u;
        vs[i] = v;
      });
      state.box = boxOf(state.flats);
      state.lines = points.n ? contours(state.flats, points.count, state.box) : null;
      state.sets = state.sets.map((set) => ({ ...set, outline: null }));
      state.outline = null;
      if (state.point) state.point.place = plane().flat(state.point.x);
      reset();
    }

    function reset() {
      const [left, bottom, right, top] = state.box;
      state.centre = [(left + right) / 2, (bottom + top) / 2];
      state.scale = 0.92 * Math.min(width / (right - left), height / (top - bottom));
      ask.moved();
      draw();
    }

    function resize() {
      const before = [width, height];
      width = canvas.clientWidth;
      height = canvas.clientHeight;
      ratio = Math.min(window.devicePixelRatio || 1, 2);
      if (!width || !height) return;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      image = null;
      if (before[0]) state.scale *= Math.min(width / before[0], height / before[1]);
      draw();
    }

    // --- drawing ---

    function draw() {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        paint();
      });
    }

    function paint() {
      if (!width) return;
      paintPoints();
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      if (state.contours && state.lines) marks.contours(context, state.lines, toPixel);
      for (const set of state.sets) if (set.outline) marks.outline(context, set.outline.map(toPixel), set.label);
      if (state.outline) marks.outline(context, state.outline.map(toPixel), "");
      if (state.placed)
        marks.ellipses(
          context,
          ELLIPSES.map((sds) => ellipse(state.placed, sds)),
        );
      if (state.point) marks.crosshair(context, toPixel(state.point.place));
      marks.axisNames(context, plane().labels, width, height);
    }

    function paintPoints() {
      const paper = drawing.parse(dom.token("--map"));
      if (!image) image = context.createImageData(canvas.width, canvas.height);
      const pixels = new Uint32Array(image.data.buffer);
      pixels.fill((255 << 24) | (paper[2] << 16) | (paper[1] << 8) | paper[0]);
      for (let i = 0; i < points.n; i++) {
        xs[i] = ratio * (width / 2 + (us[i] - state.centre[0]) * state.scale);
        ys[i] = ratio * (height / 2 - (vs[i] - state.centre[1]) * state.scale);
      }
      drawing.stampAll(image, xs, ys, state.colours, state.shapes, radii());
      context.putImageData(image, 0, 0);
    }

    // Smaller points where there are more of them, or less room; bins by the rows they stand for.
    function radii() {
      const plain = points.n > 20000 ? 1.4 : points.n > 4000 ? 2.2 : points.n > 800 ? 3 : 4,
        fit = width < NARROW ? 0.75 : 1;
      const key = `${ratio}:${width < NARROW}`;
      if (!state.radii || state.radii.key !== key) {
        const values = Float64Array.from(
          { length: points.n },
          (_, i) =>
            Math.round(2 * ratio * fit * (points.count ? Math.min(1.2 + Math.log2(points.count[i]) * 0.7, 8) : plain)) /
            2,
        );
        state.radii = { key, values };
      }
      return state.radii.values;
    }

    // The ellipses of a normal with the plane's part of a covariance; by draws where the view is not linear.
    function ellipse(placed, sds) {
      const [x, y] = toPixel(plane().flat(placed.q.mean));
      const [a, b, c] = plane().spread ? plane().spread(placed.S) : spreadOf(placed);
      const middle = (a + c) / 2,
        gap = Math.hypot((a - c) / 2, b),
        angle = 0.5 * Math.atan2(2 * b, a - c);
      const radius = (v) => sds * state.scale * Math.sqrt(Math.max(v, 1e-9));
      return { x, y, long: radius(middle + gap), short: radius(middle - gap), angle: -angle };
    }

    function spreadOf(placed) {
      if (placed.flatSpread?.plane === state.plane) return placed.flatSpread.value;
      const flats = placed.draws.slice(0, 40).map((draw) => plane().flat(draw.x)),
        n = flats.length;
      const mean = [0, 1].map((k) => flats.reduce((sum, f) => sum + f[k] / n, 0));
      const part = (i, j) => flats.reduce((sum, f) => sum + ((f[i] - mean[i]) * (f[j] - mean[j])) / n, 0);
      placed.flatSpread = { plane: state.plane, value: [part(0, 0), part(0, 1), part(1, 1)] };
      return placed.flatSpread.value;
    }

    // --- moving ---

    function pan(dx, dy) {
      state.centre = [state.centre[0] - dx / state.scale, state.centre[1] + dy / state.scale];
      ask.moved();
      draw();
    }

    function zoom(factor, x = width / 2, y = height / 2) {
      const before = toPlace(x, y),
        [left, , right] = state.box;
      state.scale = Math.min(
        Math.max(state.scale * factor, (0.2 * width) / (right - left)),
        (200 * width) / (right - left),
      );
      const after = toPlace(x, y);
      state.centre = state.centre.map((c, k) => c + before[k] - after[k]);
      ask.moved();
      draw();
    }

    function pick(place, moving) {
      state.point = { place, x: plane().lift(place) };
      ask.picked(state.point.x, moving, nearestPoint(toPixel(place)));
      draw();
    }

    // The point of the map under a pixel, or −1.
    function nearestPoint([x, y]) {
      let best = -1,
        least = 8 ** 2;
      state.flats.forEach((flat, i) => {
        const [a, b] = toPixel(flat),
          d = (a - x) ** 2 + (b - y) ** 2;
        if (d < least) [best, least] = [i, d];
      });
      return best;
    }

    function takeSet(outline) {
      const members = [];
      state.flats.forEach((flat, i) => {
        if (insideOutline(flat, outline)) members.push(i);
      });
      state.outline = null;
      ask.lassoed(members, outline);
      draw();
    }

    const held = new Map();
    let action = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };

    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const [x, y] = place(event);
      held.set(event.pointerId, [x, y]);
      if (held.size > 1) action = { kind: "pinch" };
      else if (state.mode === "lasso") action = { kind: "lasso", pixels: [[x, y]] };
      else if (state.point && Math.hypot(...toPixel(state.point.place).map((p, k) => p - [x, y][k])) < NEAR)
        action = { kind: "drag" };
      else action = { kind: "pan", from: [x, y], moved: false };
    });

    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId) || !action) return;
      const [x, y] = place(event),
        [px, py] = held.get(event.pointerId);
      if (action.kind === "pinch") pinch(event.pointerId, [x, y]);
      else if (action.kind === "lasso") {
        action.pixels.push([x, y]);
        state.outline = action.pixels.map((pixel) => toPlace(...pixel));
        draw();
      } else if (action.kind === "drag") pick(toPlace(x, y), true);
      else if (action.moved || Math.hypot(x - action.from[0], y - action.from[1]) > CLICK) {
        action.moved = true;
        pan(x - px, y - py);
      }
      held.set(event.pointerId, [x, y]);
    });

    function pinch(id, now) {
      const other = [...held.entries()].find(([key]) => key !== id)[1],
        before = held.get(id);
      const distance = (p) => Math.max(Math.hypot(p[0] - other[0], p[1] - other[1]), 1);
      zoom(distance(now) / distance(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    }

    function release(event) {
      if (!held.delete(event.pointerId) || !action) return;
      const [x, y] = place(event);
      if (action.kind === "lasso" && action.pixels.length > 2) takeSet(action.pixels.map((pixel) => toPlace(...pixel)));
      else if (action.kind === "drag" || (action.kind === "pan" && !action.moved)) pick(toPlace(x, y), false);
      action = null;
    }
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", (event) => {
      held.delete(event.pointerId);
      action = null;
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        zoom(Math.exp(-event.deltaY * 0.0015), ...place(event));
      },
      { passive: false },
    );

    const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = STEPS[event.key],
        here = state.point ? toPixel(state.point.place) : [width / 2, height / 2];
      if (step && event.shiftKey) pan(-4 * NUDGE * step[0], -4 * NUDGE * step[1]);
      else if (step) pick(toPlace(here[0] + NUDGE * step[0], here[1] + NUDGE * step[1]), false);
      else if (event.key === "+" || event.key === "=") zoom(1.25);
      else if (event.key === "-") zoom(0.8);
      else if (event.key === "0") reset();
      else if (event.key === "Enter") pick(toPlace(...here), false);
      else if (event.key === "s")
        takeSet(
          Array.from({ length: 36 }, (_, i) =>
            toPlace(here[0] + CIRCLE * Math.cos((i * Math.PI) / 18), here[1] + CIRCLE * Math.sin((i * Math.PI) / 18)),
          ),
        );
      else return;
      event.preventDefault();
    });

    new ResizeObserver(resize).observe(canvas);
    resize();

    // Marks in pixels, for the SVG of the view.
    const drawn = () => ({
      width,
      height,
      state,
      toPixel,
      radius: points.n ? radii()[0] / ratio : 0,
      ellipses: state.placed ? ELLIPSES.map((sds) => ellipse(state.placed, sds)) : [],
      labels: plane().labels,
    });

    return { state, setPlane, reset, draw, paint, pan, zoom, pick, drawn };
  }

  return { create };
})();
