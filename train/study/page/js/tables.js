// Sorts tables of runs by a click on the head of a column.
'use strict';

const isMissing = text => text === '' || text === '-';

// Orders numbers by value ("<0.001" as 0.001), words alphabetically; missing values come last.
function compareCells(a, b, direction) {
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  const [x, y] = [a, b].map(text => Number(text.replaceAll(/[,<]/g, '')));
  return direction * (Number.isNaN(x) || Number.isNaN(y)
    ? a.localeCompare(b, 'en', {numeric: true}) : x - y);
}

function sortRows(table, head, down) {
  for (const each of table.tHead.querySelectorAll('[aria-sort]')) each.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const cell = row => row.cells[head.cellIndex].textContent.trim();
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => compareCells(cell(a), cell(b), down ? -1 : 1)));
}

function makeSortable(table, index) {
  if (table.tBodies[0].rows.length < 2) return;
  const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
  for (const head of heads) {
    const made = button('sort', '', null, () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      sortRows(table, head, down);
      shown.sorted[index] = [head.cellIndex, down];
    });
    made.append(...head.childNodes);
    head.append(made);
  }
  const [column, down] = shown.sorted[index] ?? [];
  if (heads[column]) sortRows(table, heads[column], down);
}
