// Draws one chart per metric with dygraphs: one line per arm, and the spread of its seeds as a band.
'use strict';

const graphs = [];
// Range from the first to the last position of the page, so that all charts share one axis.
function extent() {
  const places = data.charts.flatMap(chart => data.arms.flatMap((_, arm) => {
    const step = lineOf(chart, arm)?.step || [];
    return step.length ? [place(arm, step[0]), place(arm, step[step.length - 1])] : [];
  }));
  return places.length ? [Math.min(...places), Math.max(...places)] : [];
}

// Exponential moving average whose memory is counted in steps, so gaps do not matter.
function smoothed(chart, steps, values) {
  if (!shown.smoothing || !chart.every_step) return values;
  let mean = values[0];
  return values.map((value, i) => {
    const keep = i ? Math.exp((steps[i - 1] - steps[i]) / shown.smoothing) : 0;
    return (mean = keep * mean + (1 - keep) * value);
  });
}

// One row per position at which any arm has a point, with [low, mean, high] per arm, or null.
function rows(chart) {
  const levels = chart.levels.map(level => Array(3).fill(level.y));
  const empty = x => [x, ...data.arms.map(() => null), ...levels];
  const byPlace = new Map(extent().map(x => [x, empty(x)]));
  data.arms.forEach((_, arm) => {
    const line = lineOf(chart, arm);
    if (!line || !line.step.length) return;
    const [low, mean, high] = [line.low || line.mean, line.mean, line.high || line.mean]
      .map(values => smoothed(chart, line.step, values));
    line.step.forEach((step, i) => {
      const x = place(arm, step);
      if (!byPlace.has(x)) byPlace.set(x, empty(x));
      byPlace.get(x)[arm + 1] = [low[i], mean[i], high[i]];
    });
  });
  return [...byPlace.values()].sort((a, b) => a[0] - b[0]);
}

// Index of the point nearest to a position, or -1 outside the curve.
function nearest(places, x) {
  if (!places.length || x < places[0] || x > places[places.length - 1]) return -1;
  let low = 0, high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] <= x) low = middle; else high = middle;
  }
  return places[high] - x < x - places[low] ? high : low;
}

function values(chart, x) {
  if (x === undefined) return '';
  const number = value => Number(value.toPrecision(5));
  const arms = data.arms.map((name, arm) => {
    const line = lineOf(chart, arm);
    const at = line ? nearest(line.step.map(step => place(arm, step)), x) : -1;
    if (!shown.arms[arm] || at < 0) return '';
    const spike = (line.spike_step || []).includes(line.step[at]) ? ' ▼' : '';
    const band = line.low ? ` [${number(line.low[at])}, ${number(line.high[at])}]` : '';
    return `<span>${swatch(arm)}${escapeText(name)} <b>${number(line.mean[at])}</b>${band}${spike}</span>`;
  });
  return `<span>${shown.x} ${shown.x === 'step' ? x : large(x)}</span>${arms.join('')}`;
}

const theme = chart => ({
  colors: [...data.arms.map((_, arm) => color(arm)), ...chart.levels.map(() => css('--muted'))],
  gridLineColor: css('--grid'),
  axisLineColor: css('--frame'),
});

function series(chart) {
  const style = data.arms.map((_, arm) =>
    [arm, {strokePattern: dashes[Math.floor(arm / colors) % dashes.length]}]);
  for (const {name} of chart.levels)
    style.push([name, {strokePattern: [5, 4], strokeWidth: 1, drawPoints: false, highlightCircleSize: 0}]);
  return Object.fromEntries(style);
}

function draw(chart) {
  if (!chart.lines.some(line => line.step.length)) return;
  const figure = element('figure', ''), caption = captionOf(chart.title, chart.unit);
  const readout = element('div', 'values'), area = element('div', 'chart');
  figure.append(caption, readout, area);
  document.querySelector('#curves .drawn').append(figure);

  // A finger scrolls the page; only a mouse zooms.
  const {touchstart, touchmove, touchend, ...mouse} = Dygraph.defaultInteractionModel;
  const points = rows(chart);
  const graph = new Dygraph(area, points, {
    ...theme(chart),
    labels: ['x', ...data.arms.map((_, arm) => String(arm)), ...chart.levels.map(({name}) => name)],
    customBars: true,
    fillAlpha: 0.16,
    labelsDiv: readout,
    legend: 'always',
    legendFormatter: at => values(chart, at.x),
    logscale: chart.log,
    connectSeparatedPoints: true,
    drawPoints: points.length < 60,
    pointSize: 2.5,
    strokeWidth: 1.4,
    highlightCircleSize: 3.5,
    interactionModel: mouse,
    xRangePad: 8,
    xlabel: shown.x,
    series: series(chart),
    axes: {
      x: {axisLabelFormatter: value => shown.x !== 'step' ? large(value)
        : Number.isInteger(value) ? String(value) : ''},
      y: {axisLabelFormatter: value => short(value), axisLabelWidth: 52},
    },
    plugins: [{activate: () => ({
      didDrawChart: event => drawMarks(chart, event.dygraph, event.drawingContext),
    })}],
  });
  graphs.push({chart, caption, graph});
}

const redraw = (more = {}) =>
  graphs.forEach(({chart, graph}) => graph.updateOptions({file: rows(chart), ...more}));
