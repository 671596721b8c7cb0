// The data of report.html, what is shown of them now, and small helpers of its script.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const root = document.documentElement;
const colors = 8;  // --arm-0 ... --arm-7 in base.css; later arms repeat them, dashed
const dashes = [null, [7, 3], [2, 2], [8, 2, 2, 2]];

const shown = {rate: data.rate, smoothing: 0, arms: data.arms.map(() => true)};

const css = name => getComputedStyle(root).getPropertyValue(name).trim();
const color = arm => css(`--arm-${arm % colors}`);
const element = (tag, className, text = '') =>
  Object.assign(document.createElement(tag), {className, textContent: text});
const escapeText = text => element('i', '', text).innerHTML;
const swatch = arm =>
  `<span class="swatch arm-${arm % colors}${arm < colors ? '' : ' hollow'}"></span>`;

// The cells of each arm, and the one of them that is drawn: that of the chosen rate. An arm with a
// single rate stands for itself at every rate; -1: the arm was not trained at this rate.
const cellsOf = data.arms.map((_, arm) =>
  data.cells.flatMap((cell, i) => cell.arm === arm ? [i] : []));
const cellOf = arm => cellsOf[arm].length === 1 ? cellsOf[arm][0]
  : cellsOf[arm].find(i => data.cells[i].rate === shown.rate) ?? -1;

const lineOf = (chart, arm) => cellOf(arm) < 0 ? null : chart.lines[cellOf(arm)];

const tick = value => {
  const size = Math.abs(value);
  return value === 0 || (size >= 0.001 && size < 100000)
    ? String(Number(value.toPrecision(4))) : value.toExponential(0);
};
