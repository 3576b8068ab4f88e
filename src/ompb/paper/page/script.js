"use strict";
// Tables are complete without this script; it lets a reader sort them, look for lines, and choose light or dark.

const MOST_CHOICES = 40;
const FEW_LINES = 8;
const NAMED_KEYS = 3; // in the example of what to look for
const LONG_WORD = 24; // too long for it
const ALL = "*";
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?(?=%|$|\s+[^\s\d])/i; // behind it may come a spread, a unit or a mark
const SHARE = /^(\d+) of (\d+)/;
const WITHOUT_END = /^(diverged|never)\b/i;

function cellText(row, column) {
  return row.cells[column].textContent.trim();
}

function numberIn(text) {
  const share = text.match(SHARE);
  if (share) return Number(share[1]) / Number(share[2]);
  if (WITHOUT_END.test(text)) return Infinity;
  const found = text.replace("\u2212", "-").match(NUMBER);
  return found ? Number(found[0]) : NaN;
}

// Numbers by value, then words, whose numbers count as such: "m2" comes before "m10".
function inOrder(one, other) {
  const words = Number.isNaN(one.number) - Number.isNaN(other.number);
  if (words) return words;
  if (Number.isNaN(one.number)) return one.text.localeCompare(other.text, "en", { numeric: true });
  return (one.number > other.number) - (one.number < other.number);
}

function sortTable(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  const order = Array.from(table.tBodies[0].rows, (row) => {
    const text = cellText(row, column);
    return { row, text, number: numberIn(text) };
  });
  order.sort((one, other) => {
    if (one.text === "" || other.text === "") return (one.text === "") - (other.text === ""); // blank lines last
    return ascending ? inOrder(one, other) : -inOrder(one, other);
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

function selector(table, column, values) {
  if (values.length < 2 || values.length > MOST_CHOICES) return null;
  const name = cellText(table.tHead.rows[0], column);
  const select = document.createElement("select");
  select.dataset.column = column;
  select.setAttribute("aria-label", name);
  select.append(new Option(`${name}: all`, ALL), ...values.map((value) => new Option(value || "(none)", value)));
  return select;
}

// A number is that of a whole cell, a word the beginning of a word in a cell; what begins with a sign may be anywhere.
function finder(word) {
  if (/^-?[\d.]+%?$/.test(word)) return (text) => text === word;
  const start = /^[\p{L}\p{N}]/u.test(word) ? "(^|[^\\p{L}\\p{N}])" : "";
  const pattern = new RegExp(start + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "u");
  return (text) => pattern.test(text);
}

function makeFilterable(table) {
  const rows = Array.from(table.tBodies[0].rows);
  if (rows.length <= FEW_LINES) return;
  const columns = Array.from({ length: Number(table.dataset.keys) }, (_, column) => column);
  const values = columns.map((column) => Array.from(new Set(rows.map((row) => cellText(row, column)))));
  const keys = new Map(rows.map((row) => [row, columns.map((column) => cellText(row, column).toLowerCase())]));
  const example = columns.filter((column) => values[column].length > 1).map((column) => cellText(rows[0], column));
  const tools = document.createElement("div");
  tools.className = "tools";
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = `Filter: ${example.filter((word) => word.length <= LONG_WORD).slice(0, NAMED_KEYS).join(" ")}`;
  box.setAttribute("aria-label", "Show lines with all of these words");
  const selects = columns.map((column) => selector(table, column, values[column])).filter((made) => made);
  const count = document.createElement("output");
  tools.append(box, ...selects, count);

  function show() {
    const wanted = box.value.toLowerCase().split(/\s+/).filter((word) => word).map(finder);
    let shown = 0;
    for (const row of rows) {
      const chosen = selects.every((select) =>
        select.value === ALL || cellText(row, select.dataset.column) === select.value);
      row.hidden = !(chosen && wanted.every((isIn) => keys.get(row).some(isIn)));
      if (!row.hidden) shown += 1;
    }
    count.textContent = `${shown} of ${rows.length} lines`;
  }
  tools.addEventListener("input", show);
  show();
  table.closest(".edge").before(tools);
}

// A box with more than it shows has a shadow at that side, and can be reached and scrolled from the keyboard.
function watchEdges(table) {
  const box = table.closest(".box");
  function show() {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 1;
    const below = box.scrollHeight - box.clientHeight - box.scrollTop > 1;
    box.parentElement.classList.toggle("right", right);
    box.parentElement.classList.toggle("below", below);
    if (right || below || box.scrollLeft > 0 || box.scrollTop > 0) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-labelledby", table.getAttribute("aria-labelledby"));
    } else {
      for (const name of ["tabindex", "role", "aria-labelledby"]) box.removeAttribute(name);
    }
  }
  box.addEventListener("scroll", show, { passive: true });
  const sizes = new ResizeObserver(show);
  sizes.observe(box);
  sizes.observe(table);
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
  watchEdges(table);
}
addThemeButton();
