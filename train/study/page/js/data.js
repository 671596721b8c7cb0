// The data of report.html, the current selection, and helpers of the script.
'use strict';

const data = {lrs: [], lr: 0, arms: [], conditions: [], charts: [], maps: {}, attention: [],
  ...JSON.parse(document.getElementById('data').textContent)};
const root = document.documentElement;
const colors = 8;  // --arm-0 ... --arm-7 in base.css; later arms repeat them, dashed
const dashes = [null, [7, 3], [2, 2], [8, 2, 2, 2]];

const painters = [];  // redraw the canvases other than charts

const shown = {lr: data.lr, x: 'step', smoothing: 0, arms: data.arms.map(() => true), sorted: {}};
const css = name => getComputedStyle(root).getPropertyValue(name).trim();
const color = arm => css(`--arm-${arm % colors}`);
const element = (tag, className, text = '') =>
  Object.assign(document.createElement(tag), {className, textContent: text});
const escapeText = text => element('i', '', text).innerHTML;
const filled = (made, ...parts) => (made.append(...parts), made);
const captionOf = (title, meaning) => filled(element('figcaption', '', title), element('span', 'muted', meaning));
const swatch = arm =>
  `<span class="swatch arm-${arm % colors}${arm < colors ? '' : ' hollow'}"></span>`;

// The conditions of each arm, one per learning rate, and the index of the one to draw: the only
// one, or the one at the selected learning rate or at its own; -1: the arm was not trained at that rate.
const conditionsOf = data.arms.map((_, arm) =>
  data.conditions.flatMap((condition, i) => condition.arm === arm ? [i] : []));
const conditionOf = arm => conditionsOf[arm].length === 1 ? conditionsOf[arm][0]
  : conditionsOf[arm].find(i => shown.lr === data.lrs.length ? data.conditions[i].own
    : data.conditions[i].lr === shown.lr) ?? -1;

const lineOf = (chart, arm) => conditionOf(arm) < 0 ? null : chart.lines[conditionOf(arm)];

// Interpolates the seconds of training after a step between the points of a condition's clock.
function seconds({step, seconds}, at) {
  let i = step.findIndex(each => each >= at);
  if (i < 0) i = step.length - 1;
  const before = i ? [step[i - 1], seconds[i - 1]] : [0, 0];
  const fraction = (at - before[0]) / (step[i] - before[0]);
  return before[1] + Math.min(fraction, 1) * (seconds[i] - before[1]);
}

// Quantities for the x axis of charts, and which of them every condition has.
const axisOf = {
  step: (condition, step) => step,
  tokens: (condition, step) => step * condition.tokens,
  seconds: (condition, step) => seconds(condition.clock, step),
};
const axisNames = Object.keys(axisOf).filter(name => data.conditions.every(condition =>
  name === 'step' || (name === 'tokens' ? condition.tokens > 0 : condition.clock.step.length > 0)));
const place = (arm, step) => axisOf[shown.x](data.conditions[conditionOf(arm)], step);

// Formats a number with a maximum of significant digits: "0.03", "3e-4", "120000", "1.2e6".
function short(value, digits = 4) {
  const size = Math.abs(value);
  if (value !== 0 && (size < 0.001 || size >= 1e6))
    return value.toExponential(digits - 1).replace(/\.?0*e\+?/, 'e');
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(digits)));
}

// Formats a number of tokens or seconds: "1.2M", "35k", "90".
const large = value => {
  const [unit, sign] = value >= 1e9 ? [1e9, 'G'] : value >= 1e6 ? [1e6, 'M']
    : value >= 1e4 ? [1e3, 'k'] : [1, ''];
  return Number((value / unit).toPrecision(4)) + sign;
};
