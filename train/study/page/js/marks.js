// Marks on the charts: spikes, divergence, and the names of lines.
'use strict';

function shape(context, points) {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
}

function triangle(context, x, y) {
  shape(context, [[x, y - 3], [x - 5, y - 12], [x + 5, y - 12]]);
  context.closePath();
  context.fill();
  context.stroke();
}

function cross(context, x, y) {
  for (const to of [-5, 5]) {
    shape(context, [[x - 5, y - to], [x + 5, y + to]]);
    context.stroke();
  }
}

function drawLevels(chart, graph, context) {
  const area = graph.getArea();
  context.fillStyle = css('--muted');
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  for (const {name, y} of chart.levels) {
    const at = graph.toDomYCoord(y);
    if (at > area.y + 12 && at < area.y + area.h)
      context.fillText(`${name} ${Number(y.toPrecision(5))}`, area.x + area.w - 4, at - 4);
  }
}

// Draws spikes at the measured value, even if the curve is smoothed.
function drawMarks(chart, graph, context) {
  const area = graph.getArea(), [from, to] = graph.xAxisRange();
  const inside = x => x >= from && x <= to;
  context.save();
  drawLevels(chart, graph, context);
  data.arms.forEach((_, arm) => {
    const line = lineOf(chart, arm);
    if (!shown.arms[arm] || !line) return;
    context.fillStyle = color(arm);
    context.strokeStyle = css('--bg');
    context.lineWidth = 1;
    (line.spike_step || []).forEach((step, i) => {
      if (!inside(place(arm, step))) return;
      const [x, y] = graph.toDomCoords(place(arm, step), line.spike_value[i]);
      triangle(context, x, Math.min(Math.max(y, area.y + 14), area.y + area.h));
    });
    context.strokeStyle = color(arm);
    context.lineWidth = 2.5;
    for (const step of data.conditions[conditionOf(arm)].diverged) {
      const x = place(arm, step);
      if (inside(x)) cross(context, graph.toDomXCoord(x), area.y + 8);
    }
  });
  context.restore();
}
