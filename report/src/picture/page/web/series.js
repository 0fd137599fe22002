// Courses over time: what was busy in each step, by class of code or by what threads did, and for
// each lane.

import { keyOf } from "./group.js";
import { ACTIVITY, ACTIVITY_WORDS } from "./extents.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */
/** @typedef {import("./extents.js").Extents} Extents */
/** @typedef {import("./filter.js").Mask} Mask */

/** Samples that a column of the timeline needs, or sampling itself shows as a comb. */
const SAMPLES_PER_COLUMN = 10;

/**
 * Returns the weight of each cell, in units of the event.
 * @param {{cell: Uint32Array, count: Uint32Array, weight: Uint32Array | null}} entries
 * @param {number} cells
 * @returns {Float64Array}
 */
export function cellWeights({ cell, count, weight }, cells) {
  const out = new Float64Array(cells);
  const values = weight ?? count;
  for (let i = 0; i < cell.length; i++) out[cell[i]] += values[i];
  return out;
}

/**
 * Returns the weight per column of each class, by the function that ran.
 * @param {EventData} event
 * @param {Uint8Array} classes
 * @param {Mask} cells
 * @param {Uint8Array | null} nodes Mask.
 * @param {Columns} columns
 * @returns {Float64Array[]}
 */
export function classSeries({ tree, cellStep }, classes, cells, nodes, columns) {
  const values = tree.weight ?? tree.count;
  const out = [0, 1, 2].map(() => new Float64Array(columns.count));
  for (let node = 1; node < tree.size; node++) {
    if (nodes !== null && nodes[node] === 0) continue;
    const of = out[classes[tree.frame[node]]];
    for (let i = tree.start[node], end = tree.start[node + 1]; i < end; i++) {
      const cell = tree.cell[i];
      const step = cellStep[cell];
      if (cells[cell] === 1 && step >= columns.from && step < columns.to) {
        of[columns.of(step)] += values[i];
      }
    }
  }
  return out;
}

/**
 * Returns the part of each cell's weight that is in the nodes of a mask.
 * @param {EventData} event
 * @param {Uint8Array} nodes
 */
function partsIn({ tree, cellWeight }, nodes) {
  const parts = new Float64Array(cellWeight.length);
  const values = tree.weight ?? tree.count;
  for (let node = 1; node < tree.size; node++) {
    if (nodes[node] === 0) continue;
    for (let i = tree.start[node]; i < tree.start[node + 1]; i++) parts[tree.cell[i]] += values[i];
  }
  for (let cell = 0; cell < parts.length; cell++) parts[cell] /= cellWeight[cell] || 1;
  return parts;
}

/**
 * Returns the weight per column of each activity of threads. Where stacks are not asked for,
 * running is what the switches of threads say, else what samples stand for; the critical path has
 * its pieces.
 * @param {EventData} event
 * @param {Extents} extents
 * @param {Mask} cells
 * @param {Uint8Array | null} nodes Mask.
 * @param {Uint8Array | null} threads Mask of the threads, if switches say when they ran.
 * @param {Columns} columns
 * @returns {Float64Array[]}
 */
export function activitySeries(event, extents, cells, nodes, threads, columns) {
  const { activity, ran } = event;
  const out = ACTIVITY_WORDS.map(() => new Float64Array(columns.count));
  const parts = nodes === null ? null : partsIn(event, nodes);
  const usesRan = ran !== null && threads !== null && nodes === null;
  for (let cell = 0; cell < cells.length; cell++) {
    const of = activity?.[cell] ?? 0;
    if (cells[cell] === 0 || (usesRan && ran.says(of))) continue;
    extents.addTo(cell, parts === null ? 1 : parts[cell], columns, out[of]);
  }
  for (let i = 0; usesRan && i < ran.thread.length; i++) {
    if (threads[ran.thread[i]] === 1) ran.extents.addTo(i, 1, columns, out[ran.activity[i]]);
  }
  return out;
}

/**
 * Returns the weight per column of the nodes of a mask.
 * @param {EventData} event
 * @param {Mask} cells
 * @param {Uint8Array} nodes
 * @param {Columns} columns
 * @returns {Float64Array}
 */
export function nodeSeries(event, cells, nodes, columns) {
  const { extents, tree } = event;
  const out = new Float64Array(columns.count);
  const all = extents === null
    ? classSeries(event, new Uint8Array(tree.frame.length), cells, nodes, columns)
    : activitySeries(event, extents, cells, nodes, null, columns);
  for (const one of all) {
    for (let column = 0; column < out.length; column++) out[column] += one[column];
  }
  return out;
}

/**
 * Returns the items of each group in one list, and where each group's begin.
 * @param {number} groups
 * @param {number} items
 * @param {(item: number) => number} groupOf −1: none.
 */
function sortedByGroup(groups, items, groupOf) {
  const start = new Uint32Array(groups + 1);
  for (let item = 0; item < items; item++) {
    const group = groupOf(item);
    if (group >= 0) start[group + 1] += 1;
  }
  for (let group = 0; group < groups; group++) start[group + 1] += start[group];
  const list = new Uint32Array(start[groups]);
  const next = start.slice();
  for (let item = 0; item < items; item++) {
    const group = groupOf(item);
    if (group >= 0) list[next[group]++] = item;
  }
  return { start, list };
}

/** Lanes of the timeline: for each group its cells, and what they weigh. */
export class Lanes {
  /**
   * @param {Recording} recording
   * @param {EventData} event
   * @param {import("./group.js").Groups} groups
   * @param {Mask} cells Those of the side shown, or the parts of them that count.
   */
  constructor(recording, event, groups, cells) {
    this.event = event;
    this.groups = groups;
    this.parts = cells;
    const count = groups.keys.length;
    /** Cells of each group. */
    this.cells = sortedByGroup(count, cells.length, (cell) => (cells[cell] > 0 ? groups.ofCell[cell] : -1));
    /** Weight of each group. */
    this.weight = new Float64Array(count);
    for (let cell = 0; cell < cells.length; cell++) {
      this.weight[groups.ofCell[cell]] += event.cellWeight[cell] * cells[cell];
    }
    /** Running times of each group, if switches say when threads ran. @type {{start: Uint32Array, list: Uint32Array} | null} */
    this.ran = null;
    if (event.ran !== null && groups.kind !== "cpu") this.ran = this.ranOf(recording, event.ran);
    const { start } = this.cells;
    /** Groups, heaviest first. @type {number[]} */
    this.order = Array.from(groups.keys.keys())
      .filter((group) => start[group + 1] > start[group])
      .sort((a, b) => this.weight[b] - this.weight[a] || a - b);
  }

  /**
   * @param {Recording} recording
   * @param {import("./extents.js").Ran} ran
   */
  ranOf(recording, ran) {
    const { groups, event, parts } = this;
    const place = new Map(groups.keys.map((key, group) => [key, group]));
    const ofThread = new Int32Array(recording.meta.threads).fill(-1);
    for (let cell = 0; cell < parts.length; cell++) {
      if (parts[cell] === 0) continue;
      const thread = event.cellThread[cell];
      ofThread[thread] = place.get(keyOf(recording, groups.kind, thread, 0)) ?? -1;
    }
    return sortedByGroup(groups.keys.length, ran.thread.length, (i) => ofThread[ran.thread[i]]);
  }

  /**
   * Returns the weight per column of a group, by activity.
   * @param {number} group
   * @param {Columns} columns
   * @returns {Float64Array[]}
   */
  courses(group, columns) {
    const { cells, ran, event, parts } = this;
    const { extents, activity, cellStep, cellWeight } = event;
    const out = ACTIVITY_WORDS.map(() => new Float64Array(columns.count));
    for (let i = cells.start[group]; i < cells.start[group + 1]; i++) {
      const cell = cells.list[i];
      const of = activity?.[cell] ?? ACTIVITY.running;
      if (extents === null) {
        const step = cellStep[cell];
        if (step >= columns.from && step < columns.to) {
          out[of][columns.of(step)] += cellWeight[cell] * parts[cell];
        }
      } else if (ran === null || event.ran?.says(of) !== true) {
        extents.addTo(cell, 1, columns, out[of]);
      }
    }
    for (let i = ran?.start[group] ?? 0; ran !== null && i < ran.start[group + 1]; i++) {
      const item = ran.list[i];
      event.ran?.extents.addTo(item, 1, columns, out[event.ran.activity[item]]);
    }
    return out;
  }

  /**
   * Returns the weight of each group in a range of steps.
   * @param {number} from
   * @param {number} to
   * @returns {Float64Array}
   */
  weightsIn(from, to) {
    const out = new Float64Array(this.weight.length);
    const { list } = this.cells;
    const { cellStep, cellWeight, extents } = this.event;
    const { ofCell } = this.groups;
    for (let i = 0; i < list.length; i++) {
      const cell = list[i];
      const step = cellStep[cell];
      if (extents !== null) out[ofCell[cell]] += cellWeight[cell] * extents.part(cell, from, to);
      else if (step >= from && step < to) out[ofCell[cell]] += cellWeight[cell];
    }
    return out;
  }
}

/** Columns of the timeline: runs of steps of the same number, give or take one. */
export class Columns {
  /**
   * @param {number} from First step.
   * @param {number} to Step after the last one.
   * @param {number} width In pixels.
   * @param {number} samples Samples in all.
   */
  constructor(from, to, width, samples) {
    this.from = from;
    this.to = Math.max(to, from + 1);
    this.steps = this.to - from;
    const wanted = Math.min(width, Math.max(samples / SAMPLES_PER_COLUMN, 20), this.steps);
    this.count = Math.max(1, Math.floor(wanted));
  }

  /**
   * Returns the column of a step.
   * @param {number} step
   */
  of(step) {
    return Math.min(Math.floor(((step - this.from) * this.count) / this.steps), this.count - 1);
  }

  /**
   * Returns the first step of a column.
   * @param {number} column
   */
  first(column) {
    return this.from + Math.ceil((column * this.steps) / this.count);
  }
}
