// What is shown: masks over cells and nodes, totals under them, sums per function, and changes
// between two masks. A filter is one pass over the entries; totals are one pass backwards.

import { KIND } from "./model.js";
import { keyOf } from "./group.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */
/** @typedef {import("./model.js").Tree} Tree */
/** @typedef {import("./state.js").State} State */
/** @typedef {Uint8Array | Float32Array} Mask 1 for each cell that counts, or the part of it that does. */

let versions = 0;

/** Samples and weights of a tree's nodes under one mask. Weights are in units of the event. */
export class Totals {
  /**
   * @param {number} size
   * @param {boolean} weighted
   */
  constructor(size, weighted) {
    this.self = new Float64Array(size);
    this.total = new Float64Array(size);
    this.selfSamples = weighted ? new Float64Array(size) : this.self;
    this.samples = weighted ? new Float64Array(size) : this.total;
    /** Number of times these were measured: boxes remember theirs. */
    this.version = 0;
  }

  /**
   * Takes the figures of other totals of the same tree.
   * @param {Totals} other
   */
  copy(other) {
    this.self.set(other.self);
    this.total.set(other.total);
    if (this.samples !== this.total) {
      this.selfSamples.set(other.selfSamples);
      this.samples.set(other.samples);
    }
    this.version = ++versions;
  }

  /** Weight of everything. */
  get all() {
    return this.total[0];
  }

  /** Samples of everything. */
  get allSamples() {
    return this.samples[0];
  }
}

/**
 * Measures a tree under masks.
 * @param {Tree} tree
 * @param {Mask} cells
 * @param {Uint8Array | null} nodes 1 for each node of the recording's tree that counts.
 * @param {Totals} out
 * @returns {Totals}
 */
export function measure(tree, cells, nodes, out) {
  add(tree, tree.weight ?? tree.count, cells, nodes, out.self, out.total);
  if (out.samples !== out.total) {
    add(tree, tree.count, present(cells), nodes, out.selfSamples, out.samples);
  }
  out.version = ++versions;
  return out;
}

/**
 * Returns the cells of which any part counts: a sample counts whole.
 * @param {Mask} cells
 */
function present(cells) {
  if (cells instanceof Uint8Array) return cells;
  const out = new Uint8Array(cells.length);
  for (let cell = 0; cell < out.length; cell++) out[cell] = cells[cell] > 0 ? 1 : 0;
  return out;
}

/**
 * @param {Tree} tree
 * @param {Uint32Array} values
 * @param {Mask} cells
 * @param {Uint8Array | null} nodes
 * @param {Float64Array} self
 * @param {Float64Array} total
 */
function add(tree, values, cells, nodes, self, total) {
  const { size, start, cell, base } = tree;
  for (let node = 0, i = 0; node < size; node++) {
    const end = start[node + 1];
    let sum = 0;
    if (nodes !== null && nodes[base === null ? node : base[node]] === 0) i = end;
    for (; i < end; i++) {
      const at = cell[i];
      sum += cells[at] * values[i];
    }
    self[node] = sum;
  }
  addUp(tree, self, total);
}

/**
 * Adds what nodes have themselves up to their callers.
 * @param {Tree} tree
 * @param {Float64Array} self
 * @param {Float64Array} total
 */
function addUp({ size, parent }, self, total) {
  total.set(self);
  for (let node = size - 1; node > 0; node--) total[parent[node]] += total[node];
}

/** Entries of a tree by cell: a range that is dragged changes few cells at a time. */
export class CellIndex {
  /**
   * @param {Tree} tree
   * @param {number} cells
   */
  constructor(tree, cells) {
    this.tree = tree;
    const start = new Uint32Array(cells + 1);
    const entry = new Uint32Array(tree.cell.length);
    const node = new Uint32Array(tree.cell.length);
    for (let i = 0; i < entry.length; i++) start[tree.cell[i] + 1] += 1;
    for (let cell = 0; cell < cells; cell++) start[cell + 1] += start[cell];
    const next = start.slice();
    for (let of = 0, i = 0; of < tree.size; of++) {
      for (; i < tree.start[of + 1]; i++) {
        const place = next[tree.cell[i]]++;
        entry[place] = i;
        node[place] = of;
      }
    }
    /** First place of each cell, and one more; entry and node of each place. */
    this.start = start;
    this.entry = entry;
    this.node = node;
  }

  /**
   * Changes totals from one mask of cells to another.
   * @param {Mask} from
   * @param {Mask} to
   * @param {Uint8Array | null} nodes As in `measure`.
   * @param {Totals} out
   */
  move(from, to, nodes, out) {
    const { tree, start, entry, node } = this;
    const { base, count, weight } = tree;
    const isWeighted = out.samples !== out.total;
    for (let cell = 0; cell < from.length; cell++) {
      const by = to[cell] - from[cell];
      if (by === 0) continue;
      const samples = Math.sign(to[cell]) - Math.sign(from[cell]);
      for (let i = start[cell]; i < start[cell + 1]; i++) {
        const of = node[i];
        if (nodes !== null && nodes[base === null ? of : base[of]] === 0) continue;
        out.self[of] += by * (weight ?? count)[entry[i]];
        if (isWeighted) out.selfSamples[of] += samples * count[entry[i]];
      }
    }
    addUp(tree, out.self, out.total);
    if (isWeighted) addUp(tree, out.selfSamples, out.samples);
    out.version = ++versions;
  }
}

/** Sums per function. */
export class FunctionSums {
  /** @param {number} names */
  constructor(names) {
    this.self = new Float64Array(names);
    this.total = new Float64Array(names);
    this.selfSamples = new Float64Array(names);
    this.samples = new Float64Array(names);
  }
}

/**
 * Sums a tree's totals per function; a sample counts once in each function of its stack.
 * @param {Tree} tree
 * @param {Totals} totals
 * @param {FunctionSums} out
 * @returns {FunctionSums}
 */
export function sumFunctions(tree, totals, out) {
  sum(tree, totals.self, totals.total, out.self, out.total);
  if (totals.samples === totals.total) {
    out.selfSamples.set(out.self);
    out.samples.set(out.total);
  } else {
    sum(tree, totals.selfSamples, totals.samples, out.selfSamples, out.samples);
  }
  return out;
}

/**
 * @param {Tree} tree
 * @param {Float64Array} self
 * @param {Float64Array} total
 * @param {Float64Array} outSelf
 * @param {Float64Array} outTotal
 */
function sum(tree, self, total, outSelf, outTotal) {
  const { size, frame, outermost } = tree;
  const names = outSelf.length;
  outSelf.fill(0);
  outTotal.fill(0);
  for (let node = 1; node < size; node++) {
    const of = frame[node];
    if (of >= names) continue;
    outSelf[of] += self[node];
    if (outermost[node] === 1) outTotal[of] += total[node];
  }
}

/**
 * Returns which cells are shown (`a`), and which those are compared with (`b`), if anything is.
 * With two recordings that is the other one; else the rest of the time, or of the lanes.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {State} state
 * @param {boolean} [withTime] Whether the range of time counts.
 * @returns {{a: Mask, b: Mask | null}}
 */
export function cellMasks(recording, event, state, withTime = true) {
  const { cellThread, cellStep, cellCpu, extents } = event;
  const { side, pid } = recording.threads;
  const time = withTime ? state.time() : null;
  const lane = state.lane();
  const two = recording.meta.sides.length > 1;
  const compares = two || (state.compare && (time !== null || lane !== null));
  // Threads: 0 hidden, 1 shown if the time fits, 2 only what is compared with.
  const ofThread = new Uint8Array(recording.meta.threads);
  const isCpu = lane !== null && lane.lane === "cpu";
  for (let t = 0; t < ofThread.length; t++) {
    if (state.hidesIdle() && pid[t] === 0) continue;
    const isInLane = lane === null || isCpu || keyOf(recording, lane.lane, t, 0) === lane.key;
    if (side[t] !== state.side) {
      // A process or thread of one recording is none of the other.
      ofThread[t] = isInLane || (lane !== null && lane.lane !== "command") ? 2 : 0;
    } else ofThread[t] = isInLane ? 1 : !two && time === null ? 2 : 0;
  }
  const { length } = cellThread;
  const hasParts = extents !== null && time !== null;
  const a = hasParts ? new Float32Array(length) : new Uint8Array(length);
  const b = !compares ? null : hasParts ? new Float32Array(length) : new Uint8Array(length);
  const from = time === null ? 0 : time.from;
  const to = time === null ? Infinity : time.to;
  for (let cell = 0; cell < a.length; cell++) {
    const kind = ofThread[cellThread[cell]];
    if (kind === 0) continue;
    const isOnCpu = !isCpu || cellCpu[cell] === lane.key + 1;
    if (kind === 1 && isOnCpu) {
      a[cell] = hasParts ? extents.part(cell, from, to)
        : cellStep[cell] >= from && cellStep[cell] < to ? 1 : 0;
    }
    const isCompared = two ? kind === 2 && isOnCpu : isOnCpu || time === null;
    if (b !== null && isCompared) b[cell] = 1 - a[cell];
  }
  return { a, b };
}

/**
 * Returns which nodes count: those whose stacks pass through all chosen functions, and are not
 * idle where idle is hidden. `null` if all do.
 * @param {Recording} recording
 * @param {Uint8Array[]} needed Of each filter: 1 for each frame of which a stack must have one.
 * @param {boolean} hideIdle
 * @returns {Uint8Array | null}
 */
export function nodeMask(recording, needed, hideIdle) {
  const idle = hideIdle && recording.kind.includes(KIND.idle);
  if (needed.length === 0 && !idle) return null;
  const { nodeFrame, nodeParent, kind } = recording;
  const mask = new Uint8Array(nodeFrame.length).fill(1);
  for (const frames of needed) {
    const through = stacksThrough(recording, frames);
    for (let node = 0; node < mask.length; node++) mask[node] &= through[node];
  }
  if (idle) {
    const hidden = new Uint8Array(nodeFrame.length);
    for (let node = 1; node < mask.length; node++) {
      const isIdle = kind[nodeFrame[node]] === KIND.idle;
      hidden[node] = isIdle ? 1 : hidden[nodeParent[node]];
      if (hidden[node] === 1) mask[node] = 0;
    }
  }
  return mask;
}

/**
 * Returns 1 for each node that has one of some frames, or a caller that has.
 * @param {Recording} recording
 * @param {Uint8Array} frames 1 for each of these frames.
 * @returns {Uint8Array}
 */
export function stacksThrough(recording, frames) {
  const { nodeFrame, nodeParent } = recording;
  const through = new Uint8Array(nodeFrame.length);
  for (let node = 1; node < through.length; node++) {
    through[node] = frames[nodeFrame[node]] | through[nodeParent[node]];
  }
  return through;
}

/**
 * Returns the weight of all stacks that pass through some frames, each sample counted once.
 * @param {Tree} tree
 * @param {Totals} totals
 * @param {Uint8Array} frames
 * @returns {number}
 */
export function weightThrough(tree, totals, frames) {
  const { size, end, frame } = tree;
  let weight = 0;
  for (let node = 1; node < size; ) {
    if (frames[frame[node]] === 1) {
      weight += totals.total[node];
      node = end[node];
    } else {
      node += 1;
    }
  }
  return weight;
}

/**
 * Returns a change as log2 of the ratio of two shares; 0 if it is no more than chance: three
 * standard errors of the difference, as counts of samples vary (Poisson).
 * @param {{weight: number, samples: number, all: number, allSamples: number}} a
 * @param {{weight: number, samples: number, all: number, allSamples: number}} b
 * @returns {number} At most 6 to each side.
 */
export function changeOf(a, b) {
  if (!(a.all > 0) || !(b.all > 0)) return 0;
  const shareA = a.weight / a.all;
  const shareB = b.weight / b.all;
  const error = Math.sqrt(
    shareA ** 2 / Math.max(a.samples, 1) + shareB ** 2 / Math.max(b.samples, 1));
  if (Math.abs(shareA - shareB) <= 3 * error) return 0;
  if (shareA === 0) return -6;
  if (shareB === 0) return 6;
  return Math.max(-6, Math.min(6, Math.log2(shareA / shareB)));
}

/**
 * Returns the frames with the greatest values, greatest first; equal ones in order of frames.
 * @param {Float64Array} values
 * @param {number} most
 * @param {(frame: number) => boolean} accepts
 * @returns {number[]}
 */
export function greatest(values, most, accepts) {
  /** @type {number[]} */
  const found = [];
  for (let frame = 0; frame < values.length; frame++) {
    const value = values[frame];
    if (!(value > 0)) continue;
    if (found.length === most && value <= values[found[most - 1]]) continue;
    if (!accepts(frame)) continue;
    let place = found.length;
    while (place > 0 && value > values[found[place - 1]]) place -= 1;
    found.splice(place, 0, frame);
    if (found.length > most) found.pop();
  }
  return found;
}
