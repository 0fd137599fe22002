// Cells by command, process, thread or CPU: lanes of the timeline, and first level of the graph.

import { fillEnds } from "./model.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */
/** @typedef {import("./model.js").Tree} Tree */
/** @typedef {"command" | "process" | "thread" | "cpu"} GroupKind */

/**
 * Groups of an event's cells.
 * @typedef {object} Groups
 * @property {GroupKind} kind
 * @property {number[]} keys Command number, pid, tid or CPU (-1: unknown) of each group, ascending.
 * @property {string[]} labels
 * @property {Uint32Array} ofCell
 */

/** @type {GroupKind[]} */
export const GROUP_KINDS = ["command", "process", "thread", "cpu"];

/**
 * Returns the key of a thread or CPU in groups of a kind.
 * @param {Recording} recording
 * @param {GroupKind} kind
 * @param {number} thread
 * @param {number} cpu CPU + 1.
 * @returns {number}
 */
export function keyOf(recording, kind, thread, cpu) {
  const { command, pid, tid } = recording.threads;
  if (kind === "command") return command[thread];
  if (kind === "process") return pid[thread];
  if (kind === "thread") return tid[thread];
  return cpu - 1;
}

/**
 * Returns the groups of an event's cells.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {Float64Array} cellWeight
 * @param {GroupKind} kind
 * @returns {Groups}
 */
export function groupsOf(recording, event, cellWeight, kind) {
  const { cellThread, cellCpu } = event;
  /** @type {Map<number, number>} Key to group, in order of appearance. */
  const numbers = new Map();
  const raw = new Uint32Array(cellThread.length);
  for (let cell = 0; cell < raw.length; cell++) {
    const key = keyOf(recording, kind, cellThread[cell], cellCpu[cell]);
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = numbers.size));
    raw[cell] = number;
  }
  const keys = [...numbers.keys()].sort((a, b) => a - b);
  const place = new Uint32Array(keys.length);
  keys.forEach((key, i) => (place[numbers.get(key) ?? 0] = i));
  const ofCell = raw.map((number) => place[number]);
  const labels = labelsOf(recording, event, cellWeight, kind, keys, ofCell);
  return { kind, keys, labels, ofCell };
}

/**
 * Returns what groups are called: process and thread by their heaviest command.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {Float64Array} cellWeight
 * @param {GroupKind} kind
 * @param {number[]} keys
 * @param {Uint32Array} ofCell
 * @returns {string[]}
 */
function labelsOf(recording, event, cellWeight, kind, keys, ofCell) {
  if (kind === "command") return keys.map((key) => recording.commands[key] ?? "");
  if (kind === "cpu") return keys.map((key) => (key < 0 ? "CPU unknown" : `CPU ${key}`));
  const perThread = new Float64Array(recording.meta.threads);
  /** @type {Int32Array} Heaviest thread of each group. */
  const heaviest = new Int32Array(keys.length).fill(-1);
  for (let cell = 0; cell < ofCell.length; cell++) {
    perThread[event.cellThread[cell]] += cellWeight[cell];
  }
  for (let cell = 0; cell < ofCell.length; cell++) {
    const group = ofCell[cell];
    const thread = event.cellThread[cell];
    const other = heaviest[group] ?? -1;
    if (other < 0 || perThread[thread] > perThread[other]) heaviest[group] = thread;
  }
  return keys.map((key, group) => {
    const command = recording.threads.command[heaviest[group]];
    return `${recording.commands[command] ?? ""} ${key}`;
  });
}

/** Arrays that grow while a grouped tree is made. */
class Growing {
  /** @param {number} capacity */
  constructor(capacity) {
    this.size = 0;
    this.base = new Uint32Array(capacity);
    this.frame = new Uint32Array(capacity);
    this.parent = new Int32Array(capacity);
    this.entries = new Uint32Array(capacity);
  }

  /**
   * @param {number} base
   * @param {number} frame
   * @param {number} parent
   * @returns {number} The new node.
   */
  add(base, frame, parent) {
    const node = this.size++;
    if (node === this.base.length) {
      this.base = doubled(this.base, new Uint32Array(node * 2));
      this.frame = doubled(this.frame, new Uint32Array(node * 2));
      this.parent = doubled(this.parent, new Int32Array(node * 2));
      this.entries = doubled(this.entries, new Uint32Array(node * 2));
    }
    this.base[node] = base;
    this.frame[node] = frame;
    this.parent[node] = parent;
    return node;
  }
}

/**
 * @template {Uint32Array | Int32Array} T
 * @param {T} from
 * @param {T} to
 * @returns {T}
 */
function doubled(from, to) {
  to.set(from);
  return to;
}

/**
 * Returns the tree with the groups as its first level: one counting sort of the entries, then each
 * group's nodes in preorder.
 * @param {Recording} recording
 * @param {Tree} tree
 * @param {Groups} groups
 * @returns {Tree}
 */
export function groupedTree(recording, tree, groups) {
  const number = groups.keys.length;
  const entries = tree.cell.length;
  const first = new Uint32Array(number + 1);
  for (let i = 0; i < entries; i++) first[groups.ofCell[tree.cell[i]] + 1] += 1;
  for (let group = 0; group < number; group++) first[group + 1] += first[group];
  const nodeOf = new Uint32Array(entries);
  const cell = new Uint32Array(entries);
  const count = new Uint32Array(entries);
  const weight = tree.weight === null ? null : new Uint32Array(entries);
  const next = first.slice();
  for (let node = 1; node < tree.size; node++) {
    for (let i = tree.start[node], end = tree.start[node + 1]; i < end; i++) {
      const group = groups.ofCell[tree.cell[i]];
      const place = next[group];
      next[group] = place + 1;
      nodeOf[place] = node;
      cell[place] = tree.cell[i];
      count[place] = tree.count[i];
      if (weight !== null && tree.weight !== null) weight[place] = tree.weight[i];
    }
  }
  const made = new Growing(tree.size + number + 1);
  made.add(0, 0, -1);
  /** Group in which a node was made last, + 1; and as which node. */
  const seen = new Uint32Array(tree.size);
  const madeAs = new Uint32Array(tree.size);
  /** @type {number[]} */
  const chain = [];
  for (let group = 0; group < number; group++) {
    const root = made.add(0, recording.meta.names + group, 0);
    for (let i = first[group], end = first[group + 1]; i < end; i++) {
      const node = nodeOf[i];
      let up = node;
      while (up !== 0 && seen[up] !== group + 1) {
        chain.push(up);
        up = tree.parent[up];
      }
      let parent = up === 0 ? root : madeAs[up];
      while (chain.length > 0) {
        const at = chain.pop() ?? 0;
        parent = made.add(at, tree.frame[at], parent);
        seen[at] = group + 1;
        madeAs[at] = parent;
      }
      made.entries[madeAs[node]] += 1;
    }
  }
  return { ...finished(tree, made), cell, count, weight, groups: number };
}

/**
 * Returns the nodes of a grouped tree.
 * @param {Tree} tree
 * @param {Growing} made
 */
function finished(tree, made) {
  const size = made.size;
  const base = made.base.subarray(0, size);
  const parent = made.parent.subarray(0, size);
  const end = new Uint32Array(size);
  fillEnds(parent, end, size);
  const start = new Uint32Array(size + 1);
  const outermost = new Uint8Array(size);
  let entries = 0;
  for (let node = 0; node < size; node++) {
    start[node] = entries;
    entries += made.entries[node];
    outermost[node] = tree.outermost[base[node]];
  }
  start[size] = entries;
  return { size, frame: made.frame.subarray(0, size), parent, end, outermost, base, start };
}
