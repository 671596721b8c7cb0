// Heat maps, attention maps and their color bars, on canvas.
'use strict';

const rgbs = text => text.split(' ').map(hex => [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)));
// Ten equidistant colors of viridis (van der Walt and Smith, 2015), with increasing lightness.
const viridis = rgbs('440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725');
// Half of "RdBu" of ColorBrewer, and "Oranges": equally dark on both sides of white.
const diverging = rgbs('053061 2166ac 6bacd1 d1e5f0 ffffff fddbc0 f09c5a c2500e 6b2204');

// Interpolates a list of colors at a fraction from 0 to 1.
function mixed(colors, fraction) {
  const at = Math.min(Math.max(fraction, 0), 1) * (colors.length - 1);
  const below = Math.min(Math.floor(at), colors.length - 2);
  return colors[below].map((value, i) => Math.round(value + (at - below) * (colors[below + 1][i] - value)));
}

// A canvas that is redrawn when its width or the colors of the page change.
function painted(className, height, label, paint) {
  const made = Object.assign(element('canvas', className), {role: 'img', ariaLabel: label});
  made.style.height = `${height}px`;
  painters.push(() => {
    const scale = Math.max(2, devicePixelRatio), width = made.clientWidth, context = made.getContext('2d');
    Object.assign(made, {width: scale * width, height: scale * height});
    context.scale(scale, scale);
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    paint(context, width);
  });
  return made;
}

function bar(colors, ticks) {
  return painted('bar', 22, `colors from ${ticks[0][1]} to ${ticks.at(-1)[1]}`, (context, width) => {
    const place = fraction => 22 + fraction * (width - 44);
    for (let x = place(0); x < place(1); ++x) {
      context.fillStyle = `rgb(${mixed(colors, (x - 21.5) / (width - 44))})`;
      context.fillRect(x, 1, 1.2, 8);
    }
    context.fillStyle = css('--muted');
    context.font = '10px system-ui, sans-serif';
    for (const [fraction, name] of ticks) context.fillText(name, place(fraction), 20);
  });
}

// Formats the numbers of the cells with three or two digits, whichever fit; nothing if neither fits.
function cellTexts(context, {rows, values}, width) {
  const all = rows.length > 16 ? [] : [3, 2].map(digits =>
    values.map(value => value === null ? '' : short(value, digits)));
  return all.find(texts => texts.every(text => context.measureText(text).width + 4 <= width));
}

// Selects about five of many names, including the first.
const some = names => names.map((name, i) => i % Math.ceil(names.length / 5) ? '' : name);
const cut = name => name.length > 24 ? name.slice(0, 23) + '…' : name;

function heatMap(map, panel, fraction) {
  const {columns, rows, values} = panel, row = Math.min(Math.max(130 / rows.length, rows.length > 16 ? 7 : 20), 24);
  const bottom = 4 + row * rows.length;
  let left = 0, cell = 0;
  const made = painted('cells', bottom + 34, [map.title, panel.arm].filter(Boolean).join(', '), (context, width) => {
    left = 30 + Math.max(...rows.map(name => context.measureText(cut(name)).width));
    cell = (width - left - 6) / columns.length;
    const texts = cellTexts(context, panel, cell);
    values.forEach((value, i) => {
      if (value === null) return;
      const x = left + i % columns.length * cell, y = bottom - (Math.floor(i / columns.length) + 1) * row;
      context.fillStyle = `rgb(${mixed(viridis, fraction(value))})`;
      context.fillRect(x, y, cell - (cell > 8 ? 0.7 : 0), row - 0.7);
      context.fillStyle = fraction(value) < 0.6 ? '#fff' : '#000';
      if (texts) context.fillText(texts[i], x + cell / 2, y + row / 2 + 4);
    });
    context.fillStyle = css('--muted');
    some(columns).forEach((name, i) => context.fillText(name, left + (i + 0.5) * cell, bottom + 14));
    context.fillText(map.x, (left + width - 6) / 2, bottom + 29);
    context.textAlign = 'right';
    (row < 11 ? some(rows) : rows).forEach((name, i) =>
      context.fillText(cut(name), left - 6, bottom - (i + 0.5) * row + 4));
    context.textAlign = 'center';
    context.rotate(-Math.PI / 2);
    context.fillText(map.y, -bottom / 2, 11);
  });
  made.onmousemove = ({offsetX, offsetY}) => {
    const c = Math.floor((offsetX - left) / cell), r = Math.floor((bottom - offsetY) / row);
    const value = c >= 0 && c < columns.length ? values[r * columns.length + c] ?? null : null;
    made.title = value === null ? '' : `${map.y} ${rows[r]}, ${map.x} ${columns[c]}: ${short(value)}`;
  };
  return made;
}

function heatFigure(map) {
  const all = map.panels.flatMap(panel => panel.values).filter(value => value !== null);
  const [low, high] = map.range ?? [Math.min(...all), Math.max(...all)];
  const log = !map.range && low > 0 && high > 20 * low;
  const place = log ? Math.log : value => value;
  const fraction = value => low < high ? (place(value) - place(low)) / (place(high) - place(low)) : 0.5;
  const panels = element('div', 'panels'), caption = captionOf(map.title, map.meaning);
  const constants = {};  // panels with a single value are written as a line of text
  for (const panel of map.panels) {
    const found = new Set(panel.values.filter(value => value !== null));
    if (found.size === 1) (constants[short([...found][0])] ??= []).push(panel.arm);
    else panels.append(filled(element('div', ''), element('p', 'arm', panel.arm), heatMap(map, panel, fraction)));
  }
  if (panels.children.length)
    caption.append(bar(viridis, [[0, short(low, 3)], [1, short(high, 3)]]), element('span', 'muted', log ? 'log' : ''));
  caption.append(csvButton(map.file, () => mapCsv(map)));
  return filled(element('figure', 'heat'), caption, ...Object.entries(constants).map(([value, arms]) =>
    element('p', 'constant', `${value} everywhere: ${arms.join(', ')}`)), panels);
}

function triangleMap({tokens, arm, layer, head}, name, values, colors, fraction) {
  const made = element('canvas', 'map');
  Object.assign(made, {width: tokens, height: tokens, role: 'img',
    ariaLabel: `${arm}, layer ${layer}, head ${head}: ${name}, queries down, keys across`});
  const context = made.getContext('2d'), image = context.createImageData(tokens, tokens);
  for (let query = 0, at = 0; query < tokens; ++query) {
    for (let key = 0; key <= query; ++key, ++at) {
      if (values[at] !== null) image.data.set([...mixed(colors, fraction(values[at])), 255], 4 * (query * tokens + key));
    }
  }
  context.putImageData(image, 0, 0);
  return filled(element('div', ''), element('p', '', name), made);
}

function attentionFigure(head) {
  const maps = head.maps.map(levels => levels.map(level => level === null ? null : level / 65535));
  const shown = element('div', 'maps');
  const caption = captionOf(head.arm,
    `layer ${head.layer}, head ${head.head}, step ${head.step}, first token ${head.first_token}`);
  caption.append(csvButton(`attention_${head.run}_layer${head.layer}_head${head.head}.csv`, () => attentionCsv(head, maps)));
  const add = (name, values, colors = viridis, fraction = Math.sqrt) =>
    shown.append(triangleMap(head, name, values, colors, fraction));
  const two = maps.length > 1;
  add(two ? 'A1' : 'attention', maps[0]);
  if (two) {
    const both = maps[0].map((value, i) => value === null || maps[1][i] === null ? null : value - maps[1][i]);
    add('A2', maps[1]);
    add('A1 − A2', both, diverging, value => 0.5 + 0.5 * Math.sign(value) * Math.sqrt(Math.abs(value)));
    add('applied', maps[2]);
  }
  return filled(element('figure', 'attention'), caption, shown);
}

// All attention maps share a square-root scale; all differences share another.
function attentionLegend() {
  const scales = {attention: [viridis, [[0, '0'], [0.316, '.1'], [0.707, '.5'], [1, '1']]],
    difference: [diverging, [[0, '−1'], [0.25, '−.25'], [0.5, '0'], [0.75, '.25'], [1, '1']]]};
  return filled(element('div', 'legend'),
    ...Object.entries(scales).flatMap(([name, scale]) => [element('span', '', name), bar(...scale)]));
}

function drawMaps() {
  const holder = section => document.querySelector(`#${section} .drawn`);
  for (const [section, maps] of Object.entries(data.maps)) holder(section)?.append(...maps.map(heatFigure));
  if (!data.attention.length) return;
  holder('attention').append(attentionLegend(), filled(element('div', 'heads'), ...data.attention.map(attentionFigure)));
}
