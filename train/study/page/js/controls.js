// Controls of the charts, and the start of everything.
'use strict';

function button(className, html, pressed, press) {
  const made = element('button', className);
  made.type = 'button';
  made.innerHTML = html;
  if (pressed !== null) made.setAttribute('aria-pressed', String(pressed));
  made.onclick = () => press(made);
  return made;
}

function toggled(made) {
  const on = made.getAttribute('aria-pressed') !== 'true';
  made.setAttribute('aria-pressed', String(on));
  return on;
}

function armButtons() {
  data.arms.forEach((name, arm) => {
    const made = button('', swatch(arm) + escapeText(name), true, self => {
      shown.arms[arm] = toggled(self);
      graphs.forEach(({graph}) => graph.setVisibility(arm, shown.arms[arm]));
    });
    made.title = name;
    document.getElementById('arms').append(made);
  });
}

function lrChoice() {
  if (conditionsOf.every(list => list.length < 2)) return;
  const select = document.getElementById('lr');
  data.lrs.forEach((name, i) => select.append(new Option(name, String(i))));
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
    button('csv', 'CSV', null, () => save(chart.metric.replaceAll('/', '_') + '.csv', chartCsv(chart))));
  caption.append(tools);
}

function start() {
  root.classList.add('live');
  data.charts.forEach(draw);
  if (graphs.length > 1) {
    Dygraph.synchronize(graphs.map(({graph}) => graph), {range: false});
  }
  document.querySelectorAll('table.summary').forEach(makeSortable);
  armButtons();
  lrChoice();
  axisChoice();
  graphs.forEach(chartButtons);
  document.getElementById('smoothing').onchange = event => {
    shown.smoothing = Number(event.target.value);
    redraw();
  };
  document.getElementById('reset').onclick = () => graphs.forEach(({graph}) => graph.resetZoom());
  for (const made of document.querySelectorAll('button[data-head]')) {
    const head = data.attention[Number(made.dataset.head)];
    made.onclick = () => save(`attention_${head.run}_layer${head.layer}_head${head.head}.csv`, attentionCsv(head));
    made.hidden = false;
  }
  for (const id of ['controls', 'hint']) document.getElementById(id).hidden = graphs.length === 0;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () =>
    graphs.forEach(({chart, graph}) => graph.updateOptions(theme(chart))));
}
start();
const brushes = data.grid ? drawParallel(data.grid) : {};
