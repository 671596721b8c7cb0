// Draws the curves of report.html from the JSON in #data, with dygraphs.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;
  const colors = 8;  // --run-0 ... --run-7 in page.css; later runs repeat them, dashed
  const dashes = [null, [7, 4], [2, 3], [9, 3, 2, 3]];
  const visible = data.runs.map(() => true);
  const graphs = [];
  const ends = data.charts.flatMap(chart => chart.curves)
    .flatMap(curve => curve.step.length ? [curve.step[0], curve.step[curve.step.length - 1]] : []);
  const extent = ends.length ? [Math.min(...ends), Math.max(...ends)] : [];
  let smoothing = 0;

  const css = name => getComputedStyle(root).getPropertyValue(name).trim();
  const color = run => css(`--run-${run % colors}`);
  const swatch = run =>
    `<span class="swatch run-${run % colors}${run < colors ? '' : ' hollow'}"></span>`;
  const element = (tag, className, text = '') =>
    Object.assign(document.createElement(tag), {className, textContent: text});
  const escape = text => element('i', '', text).innerHTML;

  // Exponential moving average whose memory is counted in steps, so gaps do not matter.
  function smoothed(chart, curve) {
    if (!smoothing || !chart.every_step) return curve.value;
    let mean = curve.value[0];
    return curve.value.map((value, i) => {
      const keep = i ? Math.exp((curve.step[i - 1] - curve.step[i]) / smoothing) : 0;
      return (mean = keep * mean + (1 - keep) * value);
    });
  }

  // One row a step at which any run has a point; runs without one get null. The first and the last
  // step of the page are always there, so that all charts share one axis.
  function rows(chart) {
    const empty = step => [step, ...data.runs.map(() => null)];
    const byStep = new Map(extent.map(step => [step, empty(step)]));
    chart.curves.forEach((curve, run) => {
      const values = smoothed(chart, curve);
      curve.step.forEach((step, i) => {
        if (!byStep.has(step)) byStep.set(step, empty(step));
        byStep.get(step)[run + 1] = values[i];
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

  function legend(chart, step) {
    if (step === undefined) return '';
    const values = chart.curves.map((curve, run) => {
      const at = nearest(curve.step, step);
      if (!visible[run] || at < 0) return '';
      const spike = (curve.spike_step || []).includes(curve.step[at]) ? ' ▼' : '';
      const value = Number(curve.value[at].toPrecision(5));
      return `<span>${swatch(run)}${escape(data.runs[run].name)} <b>${value}${spike}</b></span>`;
    });
    return `<span>step ${step}</span>${values.join('')}`;
  }

  function triangle(context, x, y) {
    context.beginPath();
    context.moveTo(x, y - 3);
    context.lineTo(x - 5, y - 12);
    context.lineTo(x + 5, y - 12);
    context.closePath();
    context.fill();
    context.stroke();
  }

  function cross(context, x, y) {
    context.beginPath();
    context.moveTo(x - 5, y - 5);
    context.lineTo(x + 5, y + 5);
    context.moveTo(x + 5, y - 5);
    context.lineTo(x - 5, y + 5);
    context.stroke();
  }

  // Spikes stand at the value that was measured, also when the curve is smoothed.
  function drawMarks(chart, graph, context) {
    const area = graph.getArea(), [from, to] = graph.xAxisRange();
    context.save();
    chart.curves.forEach((curve, run) => {
      if (!visible[run]) return;
      context.fillStyle = color(run);
      context.strokeStyle = css('--bg');
      context.lineWidth = 1;
      (curve.spike_step || []).forEach((step, i) => {
        if (step < from || step > to) return;
        const [x, y] = graph.toDomCoords(step, curve.spike_value[i]);
        triangle(context, x, Math.min(Math.max(y, area.y + 14), area.y + area.h));
      });
      const end = data.runs[run].diverged;
      if (end === null || end < from || end > to) return;
      context.strokeStyle = color(run);
      context.lineWidth = 2.5;
      cross(context, graph.toDomXCoord(end), area.y + 8);
    });
    context.restore();
  }

  const tick = value => {
    const size = Math.abs(value);
    return value === 0 || (size >= 0.001 && size < 100000)
      ? String(Number(value.toPrecision(4))) : value.toExponential(0);
  };

  const theme = () => ({
    colors: data.runs.map((_, run) => color(run)),
    gridLineColor: css('--grid'),
    axisLineColor: css('--line'),
  });

  function draw(chart) {
    if (!chart.curves.some(curve => curve.step.length)) return;
    const points = rows(chart);
    const figure = element('figure', ''), caption = element('figcaption', '', chart.title);
    const values = element('div', 'values'), area = element('div', 'chart');
    caption.append(element('span', 'muted', chart.unit));
    figure.append(caption, values, area);
    document.getElementById('charts').append(figure);

    // A finger scrolls the page; only a mouse zooms.
    const {touchstart, touchmove, touchend, ...mouse} = Dygraph.defaultInteractionModel;
    const few = points.length < 60;
    const graph = new Dygraph(area, points, {
      ...theme(),
      labels: ['step', ...data.runs.map((_, run) => String(run))],
      labelsDiv: values,
      legend: 'always',
      legendFormatter: at => legend(chart, at.x),
      logscale: chart.log,
      connectSeparatedPoints: true,
      drawPoints: few,
      pointSize: 2.5,
      strokeWidth: 1.4,
      highlightCircleSize: 3.5,
      interactionModel: mouse,
      xRangePad: 8,
      xlabel: 'step',
      series: Object.fromEntries(data.runs.map(
        (_, run) => [run, {strokePattern: dashes[Math.floor(run / colors) % dashes.length]}])),
      axes: {
        x: {axisLabelFormatter: value => Number.isInteger(value) ? String(value) : ''},
        y: {axisLabelFormatter: tick, axisLabelWidth: 52},
      },
      plugins: [{activate: () => ({
        didDrawChart: event => drawMarks(chart, event.dygraph, event.drawingContext),
      })}],
    });
    graphs.push({chart, area, graph});
  }

  function controls() {
    data.runs.forEach((run, i) => {
      const button = element('button', '');
      button.type = 'button';
      button.innerHTML = swatch(i) + escape(run.name);
      button.setAttribute('aria-pressed', 'true');
      button.onclick = () => {
        visible[i] = !visible[i];
        button.setAttribute('aria-pressed', String(visible[i]));
        graphs.forEach(({graph}) => graph.setVisibility(i, visible[i]));
      };
      document.getElementById('runs').append(button);
    });
    document.getElementById('smoothing').onchange = event => {
      smoothing = Number(event.target.value);
      graphs.forEach(({chart, graph}) => graph.updateOptions({file: rows(chart)}));
    };
    document.getElementById('reset').onclick = () =>
      graphs.forEach(({graph}) => graph.resetZoom());
    document.getElementById('controls').hidden = false;
    document.getElementById('hint').hidden = false;
  }

  // On paper the charts are drawn in the light colours and scaled: a canvas that is resized while
  // the browser prepares to print stays empty.
  function retheme(print) {
    root.classList.toggle('print', print);
    graphs.forEach(({area, graph}) => {
      area.style.zoom = print ? Math.min(1, 680 / area.offsetWidth) : '';
      graph.updateOptions(theme());
    });
  }

  data.charts.forEach(draw);
  if (graphs.length > 1) {
    Dygraph.synchronize(graphs.map(({graph}) => graph), {range: false});
  }
  controls();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => retheme(false));
  addEventListener('beforeprint', () => retheme(true));
  addEventListener('afterprint', () => retheme(false));
})();
