// Controls of the charts, and the start of the script.
'use strict';

function button(className, html, pressed, press) {
  const made = element('button', className);
  made.type = 'button';
  made.innerHTML = html;
  if (pressed !== null) made.setAttribute('aria-pressed', String(pressed));
  made.onclick = () => press(made);
  return made;
}

const csvButton = (name, text) => button('csv', 'CSV', null, () => save(name, text()));

function toggled(made) {
  const on = made.getAttribute('aria-pressed') !== 'true';
  made.setAttribute('aria-pressed', String(on));
  return on;
}

function armButtons() {
  data.arms.forEach((name, arm) => {
    const made = button('', swatch(arm) + escapeText(name), shown.arms[arm], self => {
      shown.arms[arm] = toggled(self);
      graphs.forEach(({graph}) => graph.setVisibility(arm, shown.arms[arm]));
    });
    made.title = name;
    if (!shown.arms[arm]) graphs.forEach(({graph}) => graph.setVisibility(arm, false));
    document.getElementById('arms').append(made);
  });
}

function lrChoice() {
  if (conditionsOf.every(list => list.length < 2)) return;
  const select = document.getElementById('lr');
  [...data.lrs, "each arm's own"].forEach((name, i) => select.append(new Option(name, String(i))));
  select.value = String(shown.lr);
  select.onchange = () => {
    shown.lr = Number(select.value);
    redraw();
  };
  document.getElementById('lr-label').hidden = false;
}

function axisChoice() {
  const select = document.getElementById('x');
  axisNames.forEach(name => select.append(new Option(name, name)));
  select.value = shown.x;
  select.onchange = () => {
    shown.x = select.value;
    redraw({xlabel: shown.x, dateWindow: null});
  };
  document.getElementById('x-label').hidden = axisNames.length < 2;
}

function chartButtons({chart, caption, graph}) {
  const tools = element('span', 'tools');
  tools.append(
    button('log', 'log', chart.log, self => graph.updateOptions({logscale: toggled(self)})),
    csvButton(chart.metric.replaceAll('/', '_') + '.csv', () => chartCsv(chart)));
  caption.append(tools);
}

function chartControls() {
  armButtons();
  lrChoice();
  axisChoice();
  graphs.forEach(chartButtons);
  const smoothing = document.getElementById('smoothing');
  smoothing.value = String(shown.smoothing);
  smoothing.onchange = event => {
    shown.smoothing = Number(event.target.value);
    redraw();
  };
  document.getElementById('reset').onclick = () => graphs.forEach(({graph}) => graph.resetZoom());
  for (const id of ['controls', 'hint']) document.getElementById(id).hidden = false;
}

// Redraws everything, after a change of colors or page width.
function repaint(more = {}) {
  painters.forEach(paint => paint());
  graphs.forEach(({chart, graph}) => graph.updateOptions({...theme(chart), ...more}));
}

// Prepares printing: paper is white, narrower than most screens, and finer (css/print.css).
function paper(isPaper) {
  root.classList.toggle('paper', isPaper);
  repaint({pixelRatio: isPaper ? 3 : null});
  graphs.forEach(({graph}) => graph.resize());
}

function start() {
  data.charts.forEach(draw);
  if (graphs.length > 1) {
    Dygraph.synchronize(graphs.map(({graph}) => graph), {range: false});
  }
  if (graphs.length) chartControls();
  document.querySelectorAll('table.summary').forEach(makeSortable);
  drawMaps();
  painters.forEach(paint => paint());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => repaint());
  addEventListener('resize', () => painters.forEach(paint => paint()));
  addEventListener('beforeprint', () => paper(true));
  addEventListener('afterprint', () => paper(false));
}

start();
