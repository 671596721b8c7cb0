// Parallel coordinates of a grid: an axis a key, a line an arm at a learning rate. Drawn with d3.
'use strict';

const kLoss = 'val loss', kFailed = 'none finished';

function lossScale(lines, top, bottom) {
  const losses = lines.map(line => line.loss).filter(loss => loss !== null);
  const [low, high] = losses.length ? [Math.min(...losses), Math.max(...losses)] : [0, 1];
  return d3.scaleLinear([low, high === low ? low + 1 : high], [bottom, top]);
}

// Returns the brushes by the name of their axis, for scripts that use the page.
function drawParallel(grid) {
  const width = 900, height = 340, top = 44, bottom = height - 14, shown = new Map();
  const names = [...grid.keys, kLoss];
  const holder = document.getElementById('parallel');
  const svg = d3.select(holder).append('svg').attr('class', 'plot')
    .attr('viewBox', `0 0 ${width} ${height}`).attr('role', 'img')
    .attr('aria-label', 'Final validation loss of every condition by its keys');
  const x = d3.scalePoint(names, [80, width - 80]);
  const loss = lossScale(grid.lines, top + 24, bottom);
  const scales = grid.keys.map((_, key) => d3.scalePoint(grid.values[key], [bottom, top]).padding(0.4));
  const ink = d3.scaleLinear([0, 0.5, 1], ['--arm-1', '--arm-3', '--arm-5'].map(css));
  // Lines that share a value stand beside each other there, by their loss.
  const order = [...grid.lines].sort((a, b) => (a.loss ?? Infinity) - (b.loss ?? Infinity));
  const beside = new Map(order.map((line, rank) => [line, (rank + 0.5) / order.length - 0.5]));
  const room = scale => Math.min(48, 0.6 * Math.abs(scale.step()));
  const share = line => (bottom - loss(line.loss)) / (bottom - loss.range()[1]);
  const heightOf = (line, axis) => axis < grid.keys.length
    ? scales[axis](line.values[axis]) - room(scales[axis]) * beside.get(line)
    : line.loss === null ? top : loss(line.loss);
  const path = line => 'M' + names.map((name, axis) => `${x(name)},${heightOf(line, axis)}`).join('L');
  const paths = svg.append('g').attr('fill', 'none').selectAll('path').data(grid.lines).enter()
    .append('path').attr('class', 'condition').attr('d', path)
    .attr('stroke', line => line.loss === null ? css('--muted') : ink(share(line)))
    .attr('stroke-dasharray', line => line.loss === null ? '3 3' : null);
  paths.append('title').text(line => [line.arm, ...grid.keys.map((key, i) => `${key} ${line.values[i]}`),
    line.loss === null ? kFailed : `${kLoss} ${line.loss}`].join(', '));

  const refresh = () => paths.classed('faded', line => [...shown].some(([axis, [from, to]]) => {
    const at = heightOf(line, axis);
    return at < from || at > to;
  }));
  const brushes = {};
  names.forEach((name, axis) => {
    const group = svg.append('g').attr('class', 'axis').attr('transform', `translate(${x(name)},0)`);
    group.call(axis < grid.keys.length ? d3.axisLeft(scales[axis]).tickFormat(value => value || '-')
      : d3.axisRight(loss).ticks(6).tickFormat(tick));
    group.append('text').attr('class', 'name').attr('y', top - 26).text(name.slice(name.indexOf('.') + 1));
    const brush = d3.brushY().extent([[-14, top - 10], [14, bottom + 6]]).on('brush end', event => {
      const {selection} = d3.event || event;  // d3 1 sets the one, later versions pass the other
      if (selection) shown.set(axis, selection); else shown.delete(axis);
      refresh();
    });
    const strip = group.append('g').attr('class', 'brush').call(brush);
    brushes[name] = selection => strip.call(brush.move, selection);
  });
  if (grid.lines.some(line => line.loss === null)) {
    svg.append('text').attr('class', 'failed').attr('x', x(kLoss) + 9).attr('y', top + 3).text(kFailed);
  }
  holder.hidden = false;
  return brushes;
}
