"use strict";
// What the page starts from: the model, the points of the map, its planes, and what everyone looks like.
const world = (() => {
  const content = JSON.parse(dom.byId("content").textContent);
  const model = trained.open(content.model);
  const map = trained.unpackAll(content.map);
  const points = planes.openPoints(map, model);
  const views = planes.openPlanes(map, points, model.Q);
  const everyone = sets.summarise(model, points.x);

  const priorNames = model.prior ? Array.from(model.prior.log_weights, (_, k) => `Group ${k + 1}`) : [];
  const groupNames = model.groups ? model.groups.names : priorNames;
  const groupColour = (k) => (k > 0 ? content.colours[(k - 1) % content.colours.length] : content.grey);
  // The second round of colours goes with other shapes.
  const groupShape = (k) => (k > 0 ? (k - 1 + Math.floor((k - 1) / content.colours.length)) % 6 : 4);

  return {
    model,
    points,
    views,
    everyone,
    groupNames,
    groupColour,
    groupShape,
    facts: content.facts,
    grey: content.grey,
    survival: content.survival,
    explain: content.explain,
    rows: content.rows && trained.unpackAll(content.rows),
  };
})();
