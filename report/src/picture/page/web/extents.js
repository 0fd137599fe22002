// Times that reach over steps: what a thread did from one moment to another. The first step has a
// part of it, those between are full, and the last one has the rest.

import { Column } from "./decode.js";

/** What threads do, by the numbers in the page. */
export const ACTIVITY = { running: 0, waiting: 1, preempted: 2, idle: 3, runnable: 4, unknown: 5 };

/** Activities as people read them. */
export const ACTIVITY_WORDS = ["running", "waiting", "preempted", "idle", "runnable", "unknown"];

/** Times of cells or of running threads, in the order of their list. */
export class Extents {
  /**
   * @param {Uint32Array} step First step of each.
   * @param {Uint32Array} more Number of steps after the first one.
   * @param {Uint8Array} head Part of the first step in 256ths, less one.
   * @param {Float64Array} weight Of each.
   * @param {number} full Weight of a full step.
   */
  constructor(step, more, head, weight, full) {
    this.step = step;
    this.more = more;
    this.head = head;
    this.weight = weight;
    this.full = full;
  }

  /**
   * Returns the weight of one of them before a step.
   * @param {number} i
   * @param {number} at
   */
  before(i, at) {
    const past = at - this.step[i];
    if (past <= 0) return 0;
    const weight = this.weight[i];
    if (past > this.more[i]) return weight;
    const begun = ((this.head[i] + 1) / 256 + past - 1) * this.full;
    return Math.min(begun, weight);
  }

  /**
   * Returns the part of one of them that lies in a range of steps, as a multiple of 2^-16, so that
   * sums of parts are exact.
   * @param {number} i
   * @param {number} from
   * @param {number} to
   */
  part(i, from, to) {
    const step = this.step[i];
    if (this.more[i] === 0) return step >= from && step < to ? 1 : 0;
    if (step >= to || step + this.more[i] < from) return 0;
    const weight = this.weight[i];
    if (weight === 0) return 0;
    const part = (this.before(i, to) - this.before(i, from)) / weight;
    return Math.max(Math.round(part * 65536), 1) / 65536;
  }

  /**
   * Adds a part of one of them to the columns that it reaches.
   * @param {number} i
   * @param {number} factor
   * @param {import("./series.js").Columns} columns
   * @param {Float64Array} out
   */
  addTo(i, factor, columns, out) {
    const step = this.step[i];
    const end = step + this.more[i];
    if (end < columns.from || step >= columns.to) return;
    const last = columns.of(Math.min(end, columns.to - 1));
    let before = this.before(i, columns.from);
    for (let column = columns.of(Math.max(step, columns.from)); column <= last; column++) {
      const until = this.before(i, columns.first(column + 1));
      out[column] += (until - before) * factor;
      before = until;
    }
  }
}

/**
 * Reads how far the cells of an event reach, and what their threads did.
 * @param {Column} column
 * @param {Uint32Array} cellStep
 * @param {Float64Array} cellWeight
 * @param {number} full
 * @param {number} steps
 * @returns {{activity: Uint8Array, extents: Extents}}
 */
export function readExtents(column, cellStep, cellWeight, full, steps) {
  const activity = column.fill(new Uint8Array(cellStep.length));
  const more = column.fill(new Uint32Array(cellStep.length));
  const head = new Uint8Array(cellStep.length);
  for (let cell = 0; cell < more.length; cell++) {
    if (more[cell] > 0) head[cell] = column.next();
    if (cellStep[cell] + more[cell] >= steps) column.fail("has no such step");
    if (activity[cell] >= ACTIVITY_WORDS.length) column.fail("has no such activity");
  }
  column.end();
  return { activity, extents: new Extents(cellStep, more, head, cellWeight, full) };
}

/** When threads ran; of the critical path all that they did on it. */
export class Ran {
  /**
   * @param {Uint32Array} thread Of each time.
   * @param {Uint8Array} activity
   * @param {Extents} extents
   */
  constructor(thread, activity, extents) {
    this.thread = thread;
    this.activity = activity;
    this.extents = extents;
    /** Whether it says all that threads did. */
    this.isWhole = activity.some((one) => one !== ACTIVITY.running);
  }

  /**
   * Returns whether it says when threads did something, so that cells need not.
   * @param {number} activity
   */
  says(activity) {
    return this.isWhole || activity === ACTIVITY.running;
  }

  /**
   * Returns what threads did on the critical path.
   * @param {import("./path.js").CriticalPath} path
   * @param {number} full
   * @returns {Ran}
   */
  static ofPath({ thread, activity, from, to }, full) {
    const step = Uint32Array.from(from, Math.floor);
    const more = Uint32Array.from(to, (end, i) => Math.max(Math.ceil(end) - 1 - step[i], 0));
    const head = Uint8Array.from(from, (begin, i) =>
      (more[i] > 0 ? Math.max(Math.round((step[i] + 1 - begin) * 256) - 1, 0) : 0));
    const weight = Float64Array.from(to, (end, i) => (end - from[i]) * full);
    return new Ran(thread, activity, new Extents(step, more, head, weight, full));
  }

  /**
   * @param {Column} column
   * @param {number} threads
   * @param {number} full
   * @param {number} steps
   * @returns {Ran}
   */
  static read(column, threads, full, steps) {
    /** @type {number[][]} */
    const [thread, step, more, head, weight] = [[], [], [], [], []];
    for (let of = 0; of < threads; of++) {
      const first = step.length;
      const count = column.next();
      if (count > column.bytes.length) column.fail("has too many times");
      for (let i = 0; i < count; i++) {
        thread.push(of);
        step.push(column.next() + (i > 0 ? step[first + i - 1] ?? 0 : 0));
      }
      for (let i = first; i < step.length; i++) more.push(column.next());
      for (let i = first; i < step.length; i++) head.push(more[i] > 0 ? column.next() : 0);
      for (let i = first; i < step.length; i++) {
        const whole = more[i] > 0 ? head[i] + 1 + (more[i] - 1) * 256 : 0;
        weight.push(((column.next() + whole) / 256) * full);
        if (step[i] + more[i] >= steps) column.fail("has no such step");
      }
    }
    column.end();
    const extents = new Extents(Uint32Array.from(step), Uint32Array.from(more),
      Uint8Array.from(head), Float64Array.from(weight), full);
    return new Ran(Uint32Array.from(thread), new Uint8Array(thread.length), extents);
  }
}
