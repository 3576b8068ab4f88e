"use strict";
// Tables are complete without this script; it lets a reader sort them, look for lines, and choose light or dark.

const MOST_CHOICES = 40;
const FEW_LINES = 8;

function cellText(row, column) {
  return row.cells[column].textContent.trim();
}

function numberIn(text) {
  const found = text.replace("\u2212", "-").match(/^-?\d+(\.\d+)?(e-?\d+)?/i);
  return found ? Number(found[0]) : NaN;
}

function sortTable(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  const rows = Array.from(table.tBodies[0].rows);
  const texts = rows.map((row) => cellText(row, column));
  const numeric = texts.every((text) => text === "" || !Number.isNaN(numberIn(text)));
  const order = rows.map((row, place) => ({ row, text: texts[place], number: numberIn(texts[place]) }));
  order.sort((one, other) => {
    if (one.text === "" || other.text === "") return (one.text === "") - (other.text === ""); // blank lines last
    const step = numeric ? one.number - other.number : one.text.localeCompare(other.text);
    return ascending ? step : -step;
  });
  table.tBodies[0].append(...order.map((item) => item.row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
}

function makeSortable(table) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortTable(table, column));
    heading.append(button);
  });
}

function choices(table, column) {
  const rows = Array.from(table.tBodies[0].rows);
  return Array.from(new Set(rows.map((row) => cellText(row, column))));
}

function selector(table, column) {
  const values = choices(table, column);
  if (values.length < 2 || values.length > MOST_CHOICES) return null;
  const name = cellText(table.tHead.rows[0], column);
  const select = document.createElement("select");
  select.dataset.column = column;
  select.setAttribute("aria-label", name);
  select.append(new Option(`${name}: all`, ""), ...values.map((value) => new Option(value, value)));
  return select;
}

function makeFilterable(table) {
  const rows = Array.from(table.tBodies[0].rows);
  if (rows.length <= FEW_LINES) return;
  const tools = document.createElement("div");
  tools.className = "tools";
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "Filter: tcn 96 ood";
  box.setAttribute("aria-label", "Show lines with all of these words");
  const keys = Number(table.dataset.keys);
  const selects = Array.from({ length: keys }, (_, column) => selector(table, column)).filter((made) => made);
  const count = document.createElement("output");
  tools.append(box, ...selects, count);

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const row of rows) {
      const cells = Array.from(row.cells, (cell) => cell.textContent.trim().toLowerCase());
      const chosen = selects.every((select) => !select.value || cellText(row, select.dataset.column) === select.value);
      row.hidden = !(chosen && words.every((word) => cells.some((cell) => cell.includes(word))));
      if (!row.hidden) shown += 1;
    }
    count.textContent = `${shown} of ${rows.length} lines`;
  }
  tools.addEventListener("input", show);
  show();
  table.closest(".box").before(tools);
}

function addThemeButton() {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  dark.addEventListener("change", label);
  label();
  document.querySelector("header").append(button);
}

for (const table of document.querySelectorAll("table.sortable")) {
  makeFilterable(table);
  makeSortable(table);
}
addThemeButton();
