// The critical path: which thread the run waited for at each moment.

import { Column } from "./decode.js";
import { ACTIVITY_WORDS } from "./extents.js";

/** Changes of thread in view above which they are not drawn: they would be a carpet. */
const MOST_CHANGES = 500;

/** Pieces of the path, in order of time. */
export class CriticalPath {
  /**
   * @param {Uint32Array} thread
   * @param {Uint8Array} activity
   * @param {Float64Array} from In steps.
   * @param {Float64Array} to
   */
  constructor(thread, activity, from, to) {
    this.thread = thread;
    this.activity = activity;
    this.from = from;
    this.to = to;
  }

  /**
   * @param {Column} column Of each piece: thread, activity, distance from the one before and
   *   length in 256ths of a step.
   * @param {number} threads
   * @returns {CriticalPath}
   */
  static read(column, threads) {
    const count = column.next();
    if (count > column.bytes.length) column.fail("has too many pieces");
    const thread = new Uint32Array(count);
    const activity = new Uint8Array(count);
    const from = new Float64Array(count);
    const to = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; i++) {
      thread[i] = column.next();
      activity[i] = column.next();
      if (thread[i] >= threads) column.fail("has no such thread");
      if (activity[i] >= ACTIVITY_WORDS.length) column.fail("has no such activity");
      at += column.next();
      from[i] = at / 256;
      at += column.next();
      to[i] = at / 256;
    }
    column.end();
    return new CriticalPath(thread, activity, from, to);
  }

  /**
   * Returns the first piece that ends after a moment.
   * @param {number} moment
   */
  firstAfter(moment) {
    let [low, high] = [0, this.to.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.to[middle] > moment) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Returns what of the path is in a window, in rows of lanes and in pixels: its pieces, joined
   * where they cannot be seen apart, and its changes of row, unless there are too many.
   * @param {Int32Array} rowOf Row of each thread; −1: none.
   * @param {{from: number, to: number}} window
   * @param {number} width
   * @returns {{pieces: {row: number, left: number, right: number}[],
   *   changes: {x: number, from: number, to: number}[]}}
   */
  inRows(rowOf, window, width) {
    const scale = width / (window.to - window.from);
    /** @type {{row: number, left: number, right: number}[]} */
    const pieces = [];
    /** @type {{x: number, from: number, to: number}[]} */
    const changes = [];
    /** Latest piece of each row. @type {Map<number, {row: number, left: number, right: number}>} */
    const latest = new Map();
    let before = -1;
    let number = 0;
    for (let i = this.firstAfter(window.from); i < this.to.length && this.from[i] < window.to; i++) {
      const row = rowOf[this.thread[i]];
      const left = Math.max((this.from[i] - window.from) * scale, 0);
      const right = Math.min((this.to[i] - window.from) * scale, width);
      if (row !== before && i > 0 && this.from[i] > window.from) {
        number += 1;
        if (before >= 0 && row >= 0 && number <= MOST_CHANGES) changes.push({ x: left, from: before, to: row });
      }
      before = row;
      if (row < 0) continue;
      const last = latest.get(row);
      if (last !== undefined && left - last.right < 0.5) {
        last.right = right;
        continue;
      }
      const piece = { row, left, right };
      latest.set(row, piece);
      pieces.push(piece);
    }
    return { pieces, changes: number < MOST_CHANGES ? changes : [] };
  }

  /**
   * Returns the length on the path between two moments, in steps, of one thread.
   * @param {number} thread
   * @param {number} from
   * @param {number} to
   */
  lengthOf(thread, from, to) {
    let sum = 0;
    for (let i = this.firstAfter(from); i < this.to.length && this.from[i] < to; i++) {
      if (this.thread[i] === thread) sum += Math.min(this.to[i], to) - Math.max(this.from[i], from);
    }
    return sum;
  }
}
