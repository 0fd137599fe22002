// Places of boxes: row by row from the top, only what is wide enough to be seen and inside the
// window. What is too narrow joins a strip, so that nothing vanishes.

/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./merge.js").Merge} Merge */
/** @typedef {import("./filter.js").Totals} Totals */
/** @typedef {{from: number, to: number}} Span Part of the graph's width, in 0 to 1. */

/** Narrowest box, in pixels. */
export const NARROWEST = 0.35;

/** The boxes of a graph with their places, rows from the top. */
export class Layout {
  constructor() {
    /** @type {Box[]} */
    this.boxes = [];
    /** Left edges and widths in pixels. @type {number[]} */
    this.x = [];
    /** @type {number[]} */
    this.width = [];
    /** First box of each row, and one more. @type {number[]} */
    this.rowStart = [0];
    /** Strips of what is too narrow: row, left edge, width, heaviest frame. @type {number[]} */
    this.strips = [];
    /** Whether no row is left below. */
    this.isWhole = true;
  }

  /** Number of rows with boxes. */
  get rows() {
    return this.rowStart.length - 1;
  }

  /**
   * Returns the number of the box at a place, or −1.
   * @param {number} row
   * @param {number} x
   */
  at(row, x) {
    if (row < 0 || row >= this.rows) return -1;
    for (let i = this.rowStart[row]; i < this.rowStart[row + 1]; i++) {
      const left = this.x[i];
      if (x >= left && x < left + Math.max(this.width[i], 1)) return i;
    }
    return -1;
  }
}

/**
 * Lays a graph out.
 * @param {Merge} merge
 * @param {Totals} totals
 * @param {Span} span
 * @param {number} width In pixels.
 * @param {number} lastRow Rows below this one are left for later.
 * @returns {Layout}
 */
export function layOut(merge, totals, span, width, lastRow) {
  const layout = new Layout();
  const all = merge.weigh(merge.root, totals);
  if (!(all > 0)) return layout;
  const scale = width / (span.to - span.from) / all;
  const left = -span.from * all;
  layout.boxes.push(merge.root);
  layout.x.push(left * scale);
  layout.width.push(all * scale);
  layout.rowStart.push(1);
  for (let row = 1; ; row++) {
    const first = layout.rowStart[row - 1];
    const end = layout.rowStart[row];
    if (row > lastRow) {
      layout.isWhole = false;
      return layout;
    }
    for (let i = first; i < end; i++) {
      placeChildren(layout, merge, totals, i, row, scale, width);
    }
    if (layout.boxes.length === end) return layout;
    layout.rowStart.push(layout.boxes.length);
  }
}

/**
 * @param {Layout} layout
 * @param {Merge} merge
 * @param {Totals} totals
 * @param {number} parent Number of the parent's place.
 * @param {number} row
 * @param {number} scale Pixels per weight.
 * @param {number} width
 */
function placeChildren(layout, merge, totals, parent, row, scale, width) {
  const box = layout.boxes[parent];
  const isDown = merge.direction === "down";
  let x = layout.x[parent];
  /** Weight of the children that are not placed yet; upwards that is not known. */
  let left = isDown ? merge.weigh(box, totals) - merge.sum(box, totals.self) : Infinity;
  let stripFrom = 0;
  let stripTo = -1;
  let heaviest = 0;
  let frame = 0;
  const endStrip = () => {
    if (stripTo > stripFrom) layout.strips.push(row, stripFrom, stripTo - stripFrom, frame);
  };
  /** @param {number} right @param {number} weight @param {number} of */
  const addToStrip = (right, weight, of) => {
    if (right <= 0 || x >= width) return;
    if (x - stripTo > 0.01) {
      endStrip();
      stripFrom = x;
      heaviest = 0;
    }
    stripTo = right;
    if (weight > heaviest) {
      heaviest = weight;
      frame = of;
    }
  };
  for (const child of merge.childrenOf(box)) {
    if (left <= 0) break;
    if (isDown && child.whole * scale < NARROWEST) {
      // So are all that follow: no filter makes them heavier than they are in the whole.
      addToStrip(x + left * scale, left, child.frame);
      break;
    }
    const weight = merge.weigh(child, totals);
    if (weight === 0) continue;
    left -= weight;
    const right = x + weight * scale;
    if (weight * scale < NARROWEST) addToStrip(right, weight, child.frame);
    else if (right > 0 && x < width) {
      layout.boxes.push(child);
      layout.x.push(x);
      layout.width.push(weight * scale);
    }
    x = right;
  }
  endStrip();
}

/**
 * Returns the part of the graph's width that a box has.
 * @param {Merge} merge
 * @param {Totals} totals
 * @param {Box} box
 * @returns {Span}
 */
export function spanOf(merge, totals, box) {
  const all = merge.weigh(merge.root, totals);
  const own = merge.weigh(box, totals);
  if (!(all > 0) || !(own > 0)) return { from: 0, to: 1 };
  let before = 0;
  for (let at = box; at.parent !== null; at = at.parent) {
    for (const sibling of merge.childrenOf(at.parent)) {
      if (sibling === at) break;
      before += merge.weigh(sibling, totals);
    }
  }
  return { from: before / all, to: (before + own) / all };
}

/**
 * Returns the frames from below the top to a box.
 * @param {Box} box
 * @returns {number[]}
 */
export function pathOf(box) {
  const path = [];
  for (let at = box; at.parent !== null; at = at.parent) path.push(at.frame);
  return path.reverse();
}

/**
 * Returns the box at the end of a path, or the last one on the way that exists.
 * @param {Merge} merge
 * @param {number[]} path
 * @returns {Box}
 */
export function boxAt(merge, path) {
  let box = merge.root;
  for (const frame of path) {
    const child = merge.childrenOf(box).find((other) => other.frame === frame);
    if (child === undefined) break;
    box = child;
  }
  return box;
}
