// Saves the numbers of a picture as a file.
'use strict';

const field = value => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
const table = rows => rows.map(row => row.map(field).join(',') + '\n').join('');

// Writes every arm at every learning rate, even if it is not drawn now.
function chartCsv(chart) {
  const rows = [['arm', 'lr', 'step', 'mean', 'min', 'max', 'seeds']];
  chart.lines.forEach((line, i) => {
    const {arm, lr, seeds} = data.conditions[i];
    line.step.forEach((step, k) => rows.push([
      data.arms[arm], data.lrs[lr], step, line.mean[k],
      (line.low || line.mean)[k], (line.high || line.mean)[k], seeds]));
  });
  return table(rows);
}

const mapCsv = ({x, y, panels}) => table([['arm', y, x, 'value'], ...panels.flatMap(
  ({arm, columns, rows, values}) => values.flatMap((value, i) => value === null ? []
    : [[arm, rows[Math.floor(i / columns.length)], columns[i % columns.length], value]]))]);

function attentionCsv(head, maps) {
  const rows = [['query', 'key', ...maps.length === 3 ? ['A1', 'A2', 'applied'] : ['attention']]];
  for (let query = 0; query < head.tokens; ++query) {
    for (let key = 0; key <= query; ++key)
      rows.push([query, key, ...maps.map(values => values[rows.length - 1]?.toFixed(5) ?? '')]);
  }
  return table(rows);
}

function save(name, text) {
  const link = document.createElement('a');
  link.download = name;
  link.href = URL.createObjectURL(new Blob([text], {type: 'text/csv'}));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
