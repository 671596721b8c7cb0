// One chart a metric, drawn with dygraphs: a line an arm, and the spread of its seeds as a band.
'use strict';

const graphs = [];
const ends = data.charts.flatMap(chart => chart.lines)
  .flatMap(line => line.step.length ? [line.step[0], line.step[line.step.length - 1]] : []);
const extent = ends.length ? [Math.min(...ends), Math.max(...ends)] : [];
const best = chart => chart.loss ? data.best_loss
  : chart.metric === 'val/accuracy' ? data.best_accuracy : null;
const hasReference = chart => best(chart) !== null;

// Exponential moving average whose memory is counted in steps, so gaps do not matter.
function smoothed(chart, steps, values) {
  if (!shown.smoothing || !chart.every_step) return values;
  let mean = values[0];
  return values.map((value, i) => {
    const keep = i ? Math.exp((steps[i - 1] - steps[i]) / shown.smoothing) : 0;
    return (mean = keep * mean + (1 - keep) * value);
  });
}

// One row a step at which any arm has a point, [low, mean, high] each; arms without one get null.
// The first and the last step of the page are always there, so that all charts share one axis.
function rows(chart) {
  const reference = hasReference(chart) ? [Array(3).fill(best(chart))] : [];
  const empty = step => [step, ...data.arms.map(() => null), ...reference];
  const byStep = new Map(extent.map(step => [step, empty(step)]));
  data.arms.forEach((_, arm) => {
    const line = lineOf(chart, arm);
    if (!line || !line.step.length) return;
    const [low, mean, high] = [line.low || line.mean, line.mean, line.high || line.mean]
      .map(values => smoothed(chart, line.step, values));
    line.step.forEach((step, i) => {
      if (!byStep.has(step)) byStep.set(step, empty(step));
      byStep.get(step)[arm + 1] = [low[i], mean[i], high[i]];
    });
  });
  return [...byStep.values()].sort((a, b) => a[0] - b[0]);
}

// Position of the point nearest to a step, or -1 outside the curve.
function nearest(steps, step) {
  if (!steps.length || step < steps[0] || step > steps[steps.length - 1]) return -1;
  let low = 0, high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle;
  }
  return steps[high] - step < step - steps[low] ? high : low;
}

function values(chart, step) {
  if (step === undefined) return '';
  const number = value => Number(value.toPrecision(5));
  const arms = data.arms.map((name, arm) => {
    const line = lineOf(chart, arm), at = line ? nearest(line.step, step) : -1;
    if (!shown.arms[arm] || at < 0) return '';
    const spike = (line.spike_step || []).includes(line.step[at]) ? ' ▼' : '';
    const band = line.low ? ` [${number(line.low[at])}, ${number(line.high[at])}]` : '';
    return `<span>${swatch(arm)}${escapeText(name)} <b>${number(line.mean[at])}</b>${band}${spike}</span>`;
  });
  return `<span>step ${step}</span>${arms.join('')}`;
}

const theme = chart => ({
  colors: [...data.arms.map((_, arm) => color(arm)), ...(hasReference(chart) ? [css('--muted')] : [])],
  gridLineColor: css('--grid'),
  axisLineColor: css('--frame'),
});

function series(chart) {
  const style = data.arms.map((_, arm) =>
    [arm, {strokePattern: dashes[Math.floor(arm / colors) % dashes.length]}]);
  if (hasReference(chart)) style.push(['best', {strokePattern: [5, 4], strokeWidth: 1, drawPoints: false}]);
  return Object.fromEntries(style);
}

function draw(chart) {
  if (!chart.lines.some(line => line.step.length)) return;
  const figure = element('figure', ''), caption = element('figcaption', '', chart.title);
  const readout = element('div', 'values'), area = element('div', 'chart');
  const unit = chart.unit + (hasReference(chart) ? ', dashed: best achievable' : '');
  caption.append(element('span', 'muted', unit));
  figure.append(caption, readout, area);
  document.getElementById('charts').append(figure);

  // A finger scrolls the page; only a mouse zooms.
  const {touchstart, touchmove, touchend, ...mouse} = Dygraph.defaultInteractionModel;
  const points = rows(chart);
  const graph = new Dygraph(area, points, {
    ...theme(chart),
    labels: ['step', ...data.arms.map((_, arm) => String(arm)), ...(hasReference(chart) ? ['best'] : [])],
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
    xlabel: 'step',
    series: series(chart),
    axes: {
      x: {axisLabelFormatter: value => Number.isInteger(value) ? String(value) : ''},
      y: {axisLabelFormatter: tick, axisLabelWidth: 52},
    },
    plugins: [{activate: () => ({
      didDrawChart: event => drawMarks(chart, event.dygraph, event.drawingContext),
    })}],
  });
  graphs.push({chart, caption, graph});
}

const redraw = () => graphs.forEach(({chart, graph}) => graph.updateOptions({file: rows(chart)}));
