// The numbers behind a picture as a file.
'use strict';

const field = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : String(text);
const table = rows => rows.map(row => row.map(field).join(',') + '\n').join('');

// Every arm at every learning rate, also those that are not drawn now.
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

// Maps are stored up to the diagonal, as 16-bit numbers in base64.
function attentionCsv(head) {
  const names = head.maps.length === 3 ? ['A1', 'A2', 'applied'] : ['attention'];
  const levels = head.maps.map(text => {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    return new DataView(bytes.buffer);
  });
  const rows = [['query', 'key', ...names]];
  let at = 0;
  for (let query = 0; query < head.tokens; ++query) {
    for (let key = 0; key <= query; ++key, at += 2) {
      rows.push([query, key, ...levels.map(map =>
        Number((map.getUint16(at, true) / 65535).toFixed(5)))]);
    }
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
