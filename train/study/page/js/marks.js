// Marks on the charts: spikes and divergence.
'use strict';

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
  const inside = step => step >= from && step <= to;
  context.save();
  data.arms.forEach((_, arm) => {
    const line = lineOf(chart, arm);
    if (!shown.arms[arm] || !line) return;
    context.fillStyle = color(arm);
    context.strokeStyle = css('--bg');
    context.lineWidth = 1;
    (line.spike_step || []).forEach((step, i) => {
      if (!inside(step)) return;
      const [x, y] = graph.toDomCoords(step, line.spike_value[i]);
      triangle(context, x, Math.min(Math.max(y, area.y + 14), area.y + area.h));
    });
    context.strokeStyle = color(arm);
    context.lineWidth = 2.5;
    for (const step of data.conditions[conditionOf(arm)].diverged.filter(inside)) {
      cross(context, graph.toDomXCoord(step), area.y + 8);
    }
  });
  context.restore();
}
