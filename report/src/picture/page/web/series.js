// Courses over time: what was busy in each step, by class of code, and for each lane.

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */

/** Samples that a column of the timeline needs, or sampling itself shows as a comb. */
const SAMPLES_PER_COLUMN = 10;

/**
 * Returns the weight of each cell, in units of the event.
 * @param {EventData} event
 * @returns {Float64Array}
 */
export function cellWeights(event) {
  const { cell, count, weight } = event.tree;
  const out = new Float64Array(event.cellThread.length);
  const values = weight ?? count;
  for (let i = 0; i < cell.length; i++) out[cell[i]] += values[i];
  return out;
}

/**
 * Returns the weight per step of each class, by the function that ran.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {Uint8Array} classes
 * @param {Uint8Array} cells Mask.
 * @param {Uint8Array | null} nodes Mask.
 * @returns {Float64Array[]}
 */
export function classSeries(recording, event, classes, cells, nodes) {
  const { tree, cellStep } = event;
  const values = tree.weight ?? tree.count;
  const out = [0, 1, 2].map(() => new Float64Array(recording.meta.steps));
  for (let node = 1; node < tree.size; node++) {
    if (nodes !== null && nodes[node] === 0) continue;
    const of = out[classes[tree.frame[node]]];
    for (let i = tree.start[node], end = tree.start[node + 1]; i < end; i++) {
      const cell = tree.cell[i];
      if (cells[cell] === 1) {
        of[cellStep[cell]] += values[i];
      }
    }
  }
  return out;
}

/**
 * Returns the weight per step of the nodes of a mask.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {Uint8Array} cells
 * @param {Uint8Array} nodes
 * @returns {Float64Array}
 */
export function nodeSeries(recording, event, cells, nodes) {
  const [sum] = classSeries(recording, event, new Uint8Array(recording.meta.names), cells, nodes);
  return sum ?? new Float64Array(0);
}

/** Lanes of the timeline: for each group its cells, and what they weigh. */
export class Lanes {
  /**
   * @param {EventData} event
   * @param {import("./group.js").Groups} groups
   * @param {Float64Array} cellWeight
   * @param {Uint8Array} cells Mask of the side shown.
   */
  constructor(event, groups, cellWeight, cells) {
    this.event = event;
    this.groups = groups;
    this.cellWeight = cellWeight;
    const count = groups.keys.length;
    this.start = new Uint32Array(count + 1);
    for (let cell = 0; cell < cells.length; cell++) {
      if (cells[cell] === 1) this.start[groups.ofCell[cell] + 1] += 1;
    }
    for (let group = 0; group < count; group++) this.start[group + 1] += this.start[group];
    this.cells = new Uint32Array(this.start[count]);
    const next = this.start.slice();
    /** Weight of each group. */
    this.weight = new Float64Array(count);
    for (let cell = 0; cell < cells.length; cell++) {
      if (cells[cell] !== 1) continue;
      const group = groups.ofCell[cell];
      this.cells[next[group]] = cell;
      next[group] += 1;
      this.weight[group] += cellWeight[cell];
    }
    /** Groups, heaviest first. @type {number[]} */
    this.order = Array.from(groups.keys.keys())
      .filter((group) => this.start[group + 1] > this.start[group])
      .sort((a, b) => this.weight[b] - this.weight[a] || a - b);
  }

  /**
   * Returns the weight per column of a group.
   * @param {number} group
   * @param {Columns} columns
   * @returns {Float64Array}
   */
  course(group, columns) {
    const out = new Float64Array(columns.count);
    for (let i = this.start[group]; i < this.start[group + 1]; i++) {
      const cell = this.cells[i];
      out[columns.of(this.event.cellStep[cell])] += this.cellWeight[cell];
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
    const { cells, cellWeight } = this;
    const { cellStep } = this.event;
    const { ofCell } = this.groups;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i];
      const step = cellStep[cell];
      if (step >= from && step < to) out[ofCell[cell]] += cellWeight[cell];
    }
    return out;
  }
}

/** Columns of the timeline: runs of steps of the same number, give or take one. */
export class Columns {
  /**
   * @param {number} steps
   * @param {number} width In pixels.
   * @param {number} samples Samples in all.
   */
  constructor(steps, width, samples) {
    this.steps = Math.max(steps, 1);
    const wanted = Math.min(width, Math.max(samples / SAMPLES_PER_COLUMN, 20), this.steps);
    this.count = Math.max(1, Math.floor(wanted));
  }

  /**
   * Returns the column of a step.
   * @param {number} step
   */
  of(step) {
    return Math.min(Math.floor((step * this.count) / this.steps), this.count - 1);
  }

  /**
   * Returns the first step of a column.
   * @param {number} column
   */
  first(column) {
    return Math.ceil((column * this.steps) / this.count);
  }

  /**
   * Returns the sums of a series by column.
   * @param {Float64Array} series By step.
   * @returns {Float64Array}
   */
  bin(series) {
    const out = new Float64Array(this.count);
    for (let step = 0; step < this.steps; step++) out[this.of(step)] += series[step];
    return out;
  }
}
