#pragma once
// A reader of the page, as JavaScript that runs in it.

namespace difftape::study {

/// Uses everything on the page and leaves what it saw in <pre id="results">.
inline constexpr const char* kUser = R"js(
(async () => {
  const seen = {charts: [], blobs: [], names: [], violations: []};
  document.addEventListener('securitypolicyviolation', e => seen.violations.push(e.blockedURI));
  URL.createObjectURL = blob => { seen.blobs.push(blob); return 'blob:test'; };
  HTMLAnchorElement.prototype.click = function() { seen.names.push(this.download); };
  // A copy, since chromium complains of a page that reads its canvases often.
  const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const pixels = drawn => {
    const {caption} = graphs.find(({graph}) => graph === drawn);
    const canvas = caption.parentElement.querySelector('canvas');  // the other is for the mouse
    [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const near = (rgba, i, rgb) => rgba[i + 3] > 128 &&
    Math.abs(rgba[i] - rgb[0]) + Math.abs(rgba[i + 1] - rgb[1]) + Math.abs(rgba[i + 2] - rgb[2]) < 60;
  const count = (graph, arm) => {
    const hex = color(arm), rgb = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
    const rgba = pixels(graph);
    let found = 0;
    for (let i = 0; i < rgba.length; i += 4) if (near(rgba, i, rgb)) ++found;
    return found;
  };
  const picture = graph => pixels(graph).reduce((hash, value) => (31 * hash + value) | 0, 7);
  const change = (select, value) => { select.value = value; select.onchange({target: select}); };

  const lr = document.getElementById('lr'), x = document.getElementById('x'), smoothing = document.getElementById('smoothing');
  const arms = [...document.querySelectorAll('#arms button')];
  for (const {chart, caption, graph} of graphs) {
    const result = {metric: chart.metric, arms: data.arms.map((_, arm) => count(graph, arm))};
    const first = picture(graph);
    caption.querySelector('.log').click();
    result.log_changes = picture(graph) !== first;
    caption.querySelector('.log').click();
    result.log_returns = picture(graph) === first;
    arms[0].click();
    result.hidden = count(graph, 0);
    arms[0].click();
    change(smoothing, '100');
    result.smoothing_changes = picture(graph) !== first;
    change(smoothing, '0');
    if (lr.options.length > 1) {
      change(lr, String((data.lr + 1) % data.lrs.length));
      result.lr_changes = picture(graph) !== first;
      change(lr, String(data.lr));
    }
    result.along = {};
    for (const {value} of x.options) {
      change(x, value);
      const text = [...graph.maindiv_.querySelectorAll('.dygraph-xlabel')].map(e => e.textContent);
      result.along[value] = {range: graph.xAxisRange(), label: text.join(), drawn: count(graph, 1)};
    }
    change(x, 'step');
    result.axis_returns = picture(graph) === first;
    graph.updateOptions({dateWindow: [100, 200]});
    result.zoomed = graphs.map(other => other.graph.xAxisRange());
    document.getElementById('reset').click();
    seen.charts.push(result);
  }
  for (const made of document.querySelectorAll('button.csv')) made.click();
  seen.csv = await Promise.all(seen.blobs.map(blob => blob.text()));
  delete seen.blobs;
  seen.maps = [...document.querySelectorAll('canvas.map')].map(map => {
    const rgba = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
    const drawn = rgba.filter((value, i) => i % 4 === 3 && value === 255).length;
    return [map.width, map.ariaLabel.length, getComputedStyle(map).imageRendering, drawn];
  });
  seen.resources = performance.getEntriesByType('resource').map(entry => entry.name)
    .filter(name => !name.startsWith('data:'));
  seen.cells = [...document.querySelectorAll('canvas.cells')].map(cells => {
    const titles = new Set();
    for (let x = 2; x < cells.clientWidth; x += 3) {
      for (let y = 2; y < cells.clientHeight; y += 3) {
        cells.onmousemove({offsetX: x, offsetY: y});
        if (cells.title) titles.add(cells.title);
      }
    }
    return titles.size;
  });
  leave(seen);
})();
)js";

}  // namespace difftape::study
