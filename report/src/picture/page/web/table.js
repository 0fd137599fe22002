// The table of functions: a grid of which only the rows in view are in the document.

import { css } from "./colours.js";
import { button, byId, el, setBar, setText, swatch } from "./dom.js";
import { digits, percent, thousands } from "./format.js";
import { clean } from "./names.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./state.js").SortKey} SortKey */
/** @typedef {import("./app.js").App} App */

const ROW = 26;

/** @type {{key: SortKey, title: string}[]} */
const COLUMNS = [
  { key: "self", title: "Self" },
  { key: "total", title: "Total" },
  { key: "change", title: "Change" },
  { key: "name", title: "Function" },
  { key: "module", title: "Module" },
];

/**
 * @typedef {object} Row
 * @property {HTMLElement} element
 * @property {HTMLElement} self
 * @property {HTMLElement} selfBar
 * @property {HTMLElement} total
 * @property {HTMLElement} totalBar
 * @property {HTMLElement} change
 * @property {HTMLElement} square
 * @property {HTMLElement} name
 * @property {HTMLElement} module
 * @property {number} frame
 */

/** The table. */
export class Table {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.view = app.view;
    this.palette = app.palette;
    this.grid = byId("functions");
    this.sizer = byId("functions-sizer");
    /** Frames in order. @type {Uint32Array} */
    this.order = new Uint32Array(0);
    /** @type {Row[]} */
    this.rows = [];
    /** Row of the keyboard. */
    this.active = -1;
    this.frame = 0;
    /** @type {Map<SortKey, HTMLElement>} */
    this.heads = new Map();
    for (const { key, title } of COLUMNS) {
      const sort = button("button.sort", title, () => app.change((s) => (s.sort = key), {}));
      const cell = el(`div.cell.${key}`, { role: "columnheader" }, sort);
      this.heads.set(key, cell);
      byId("functions-head").append(cell);
    }
    this.grid.addEventListener("scroll", () => this.later());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.sizer.addEventListener("click", (event) => {
      const row = this.rows.find((one) => one.element.contains(/** @type {Node} */ (event.target)));
      if (row !== undefined) this.choose(row.frame);
    });
  }

  /** Sorts anew and draws. */
  refresh() {
    const { view } = this;
    const { sums, otherSums, matched, matches, state } = view;
    const kept = [];
    for (let frame = 0; frame < sums.total.length; frame++) {
      const isThere = sums.total[frame] > 0 || (otherSums?.total[frame] ?? 0) > 0;
      if (isThere && (matches === 0 || matched?.[frame] === 1)) kept.push(frame);
    }
    this.order = Uint32Array.from(kept);
    if (matched !== null && matches === 0) this.order = new Uint32Array(0);
    this.sort();
    for (const [key, head] of this.heads) {
      const isSorted = key === this.sortedBy;
      const isUp = key === "name" || key === "module";
      head.setAttribute("aria-sort", !isSorted ? "none" : isUp ? "ascending" : "descending");
    }
    this.grid.classList.toggle("compared", otherSums !== null);
    this.grid.setAttribute("aria-rowcount", String(this.order.length + 1));
    this.grid.setAttribute("aria-colcount", otherSums === null ? "4" : "5");
    byId("functions-none").hidden = this.order.length > 0;
    this.sizer.style.height = this.order.length * ROW + "px";
    this.active = Math.min(this.active, this.order.length - 1);
    if (state.selected >= 0 && this.active < 0) this.active = this.order.indexOf(state.selected);
    this.draw();
  }

  /** @returns {SortKey} */
  get sortedBy() {
    const { sort } = this.view.state;
    return sort === "change" && this.view.otherSums === null ? "self" : sort;
  }

  sort() {
    const { view, order } = this;
    const { sums, recording } = view;
    const by = this.sortedBy;
    if (by === "name" || by === "module") {
      // Frames are sorted by module and name already.
      if (by === "module") return;
      const { names } = recording;
      order.sort((a, b) => {
        const one = names[a] ?? "";
        const other = names[b] ?? "";
        return one < other ? -1 : one > other ? 1 : a - b;
      });
      return;
    }
    const keys = by === "self" ? sums.self : by === "total" ? sums.total
      : new Float64Array(sums.total.length);
    if (by === "change") {
      for (const frame of order) {
        const { a, b, change } = view.functionChange(frame);
        // What did not change by more than chance comes last.
        keys[frame] = Math.abs(a - b) * (change === 0 ? 1e-9 : 1);
      }
    }
    order.sort((a, b) => keys[b] - keys[a] || a - b);
  }

  later() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Fills the rows in view. */
  draw() {
    const height = this.grid.clientHeight - ROW;
    if (height <= 0) return;
    const needed = Math.min(Math.ceil(height / ROW) + 1, this.order.length);
    while (this.rows.length < needed) this.rows.push(this.makeRow());
    const most = Math.max(0, this.order.length - needed);
    const first = Math.min(Math.max(Math.floor(this.grid.scrollTop / ROW), 0), most);
    this.rows.forEach((row, i) => {
      row.element.hidden = i >= needed;
      if (i < needed) this.fillRow(row, first + i);
    });
    const active = this.rows.find((row, i) => i < needed && first + i === this.active);
    if (active === undefined) this.grid.removeAttribute("aria-activedescendant");
    else this.grid.setAttribute("aria-activedescendant", active.element.id);
  }

  /** @returns {Row} */
  makeRow() {
    const selfBar = el("span.bar");
    const self = el("span.figure");
    const totalBar = el("span.bar");
    const total = el("span.figure");
    const change = el("div.cell.change", { role: "gridcell" });
    const square = swatch("");
    const name = el("span.name");
    const module = el("div.cell.module", { role: "gridcell" });
    const element = el("div.row", { role: "row", id: `row-${this.rows.length}` },
      el("div.cell.self", { role: "gridcell" }, selfBar, self),
      el("div.cell.total", { role: "gridcell" }, totalBar, total),
      change,
      el("div.cell.name", { role: "gridcell" }, square, name),
      module);
    this.sizer.append(element);
    return { element, self, selfBar, total, totalBar, change, square, name, module, frame: -1 };
  }

  /**
   * @param {Row} row
   * @param {number} place
   */
  fillRow(row, place) {
    const { view } = this;
    const frame = this.order[place] ?? 0;
    row.frame = frame;
    row.element.style.transform = `translateY(${place * ROW}px)`;
    row.element.setAttribute("aria-rowindex", String(place + 2));
    row.element.setAttribute("aria-selected", String(frame === view.state.selected));
    row.element.classList.toggle("active", place === this.active);
    const all = view.a.all;
    const self = all > 0 ? view.sums.self[frame] / all : 0;
    const total = all > 0 ? view.sums.total[frame] / all : 0;
    setText(row.self, percent(self));
    setText(row.total, percent(total));
    setBar(row.selfBar, self);
    setBar(row.totalBar, total);
    if (view.otherSums !== null) {
      const { text, tone } = changeText(view, frame);
      setText(row.change, text);
      row.change.className = `cell change ${tone}`;
    }
    row.square.style.backgroundColor = css(this.palette.fills[view.fill(frame)]);
    setText(row.name, view.name(frame));
    setText(row.module, clean(view.recording.moduleName(frame), 120));
  }

  /** @param {number} frame */
  choose(frame) {
    this.active = this.order.indexOf(frame);
    this.app.select(frame);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLButtonElement) return;
    const height = this.grid.clientHeight - ROW;
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const last = this.order.length - 1;
    let next = this.active;
    if (event.key === "ArrowDown") next += 1;
    else if (event.key === "ArrowUp") next -= 1;
    else if (event.key === "PageDown") next += page;
    else if (event.key === "PageUp") next -= page;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else if (event.key === "Enter" || event.key === " ") {
      const frame = this.order[this.active];
      if (frame !== undefined) this.choose(frame);
      event.preventDefault();
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.active = Math.max(0, Math.min(next, last));
    const y = this.active * ROW;
    if (y < this.grid.scrollTop) this.grid.scrollTop = y;
    else if (y + ROW > this.grid.scrollTop + height) {
      this.grid.scrollTop = y + ROW - height;
    }
    this.draw();
    const frame = this.order[this.active] ?? 0;
    this.app.status(`${thousands(this.active + 1)} of ${thousands(this.order.length)}: ` +
      `${this.view.name(frame)}, self ${this.view.amount(this.view.sums.self[frame])}`);
  }
}

/**
 * Returns a function's change as text with a mark, and its class: more, less or chance.
 * @param {View} view
 * @param {number} frame
 */
export function changeText(view, frame) {
  const { a, b, change } = view.functionChange(frame);
  const difference = view.isPerSecond ? view.shareText(Math.abs(a - b))
    : digits(Math.abs(a - b) * 100);
  if (change === 0) return { text: `±\u00a0${difference}`, tone: "chance" };
  if (change > 0) return { text: `▲\u00a0${difference}`, tone: "more" };
  return { text: `▼\u00a0${difference}`, tone: "less" };
}
