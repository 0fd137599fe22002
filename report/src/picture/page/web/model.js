// The recording as the page holds it: threads, frames, one tree of stacks, and per event how often
// each stack was seen in which cell. A cell is a thread, a CPU and a step of time.

import { Column, DamagedPage, textsOf } from "./decode.js";
import { Ran, readExtents } from "./extents.js";
import { CriticalPath } from "./path.js";
import { readWaits } from "./waits.js";
import { cellWeights } from "./series.js";

/**
 * @typedef {object} Side
 * @property {string} name
 * @property {string | null} command
 * @property {string | null} host
 * @property {string | null} os
 * @property {string | null} arch
 * @property {number | null} cpus
 * @property {string | null} date
 * @property {number | null} duration In ns.
 * @property {string | null} begin
 * @property {{path: string, bytes: number, records: Record<string, number>, lost_events: number,
 *   lost_samples: number, complete: boolean}[]} files
 */

/**
 * @typedef {object} EventMeta
 * @property {string} name
 * @property {string} [label] Name in the switch between what ran and what waited.
 * @property {boolean} counts_time
 * @property {"ns" | "samples" | "events"} unit
 * @property {string} [axis] Label of the timeline.
 * @property {number[]} samples By side.
 * @property {number[]} period By side.
 * @property {number} lost_samples
 * @property {number} cells
 * @property {boolean} [has_extents] Whether cells say what threads did, and how far they reach.
 * @property {number} entries
 * @property {number | null} quantum Weight of a sample where all are equal.
 * @property {number} unit_weight Weight of a unit of `weights` where they are not.
 */

/**
 * @typedef {object} Meta
 * @property {number} format
 * @property {string} title
 * @property {Side[]} sides
 * @property {number} step In ns.
 * @property {number} steps
 * @property {number[]} side_steps By side.
 * @property {number} cpus
 * @property {{name: string, path: string}[]} modules
 * @property {number} nodes
 * @property {number} names
 * @property {number} commands
 * @property {number} threads
 * @property {EventMeta[]} events
 * @property {{code: string, message: string, is_minor?: boolean}[]} warnings
 * @property {{program: string, stacks: number, broken: number, cut: number, remedy: string}[]} broken
 * @property {string[]} remedies
 * @property {{least: number, samples: number} | null} cut
 * @property {{what: string, line: string}[]} views
 * @property {Verdict[]} verdicts Of two sides, by event: what `rep diff` says.
 * @property {string} tool
 */

/**
 * @typedef {object} Verdict
 * @property {string} event
 * @property {string} word
 * @property {string[]} lines
 * @property {FrameChange[]} changes Of marked functions, largest first.
 */

/**
 * @typedef {object} FrameChange
 * @property {number} frame
 * @property {number} change log2 of the ratio of side 0 to side 1.
 * @property {string} text The change with its interval.
 */

/**
 * @typedef {object} Code
 * @property {number} frame
 * @property {number} event
 * @property {{address: string, text: string, samples: number, source?: string, jump?: number,
 *   function?: string}[]} rows
 */

/** Kinds of frames. */
export const KIND = {
  user: 0, kernel: 1, unnamed: 2, jit: 3, cut: 4, inlinedUser: 5, inlinedKernel: 6, inferred: 7,
  idle: 8, other: 9,
};

/**
 * A tree of stacks in preorder, and how often each stack ends in which cell. Node 0 is the root.
 * @typedef {object} Tree
 * @property {number} size
 * @property {Uint32Array} frame Frame of each node; from `names` on: a group; the root's is unused.
 * @property {Int32Array} parent
 * @property {Uint32Array} end Node after the last one below each node.
 * @property {Uint8Array} outermost 1 where no caller has the same frame.
 * @property {Uint32Array | null} base Node of the recording's own tree, if this is another one.
 * @property {Uint32Array} start First entry of each node, and one more.
 * @property {Uint32Array} cell Of each entry.
 * @property {Uint32Array} count Samples of each entry.
 * @property {Uint32Array | null} weight Weight of each entry in `unit`s; null: its samples.
 * @property {number} groups Number of groups: nodes below the root that are no frames.
 */

/**
 * @typedef {object} EventData
 * @property {number} index
 * @property {EventMeta} meta
 * @property {number} unit Weight of 1 in the tree's weights.
 * @property {Tree} tree
 * @property {Uint32Array} cellThread
 * @property {Uint32Array} cellStep
 * @property {Uint32Array} cellCpu CPU + 1; 0: unknown.
 * @property {Float64Array} cellWeight In units of the event.
 * @property {Uint8Array | null} activity What the thread of each cell did, if that is known.
 * @property {import("./extents.js").Extents | null} extents Times of the cells.
 * @property {Ran | null} ran When threads ran.
 * @property {Float64Array[]} sums By side, four per frame: samples and period of self, of total.
 */

/** @typedef {(name: string) => Promise<Uint8Array | null>} Blocks Reads a data block. */

/** All of a page's data; events are read when they are first asked for. */
export class Recording {
  /**
   * @param {Blocks} blocks
   * @param {Meta} meta
   */
  constructor(blocks, meta) {
    this.blocks = blocks;
    this.meta = meta;
    /** @type {string[]} */
    this.names = [];
    /** @type {string[]} */
    this.commands = [];
    /** Module of each frame + 1; 0: none. */
    this.module = new Uint32Array(meta.names);
    this.kind = new Uint8Array(meta.names);
    this.threads = {
      command: new Uint32Array(meta.threads), side: new Uint8Array(meta.threads),
      pid: new Int32Array(meta.threads), tid: new Int32Array(meta.threads),
    };
    this.nodeFrame = new Uint32Array(meta.nodes + 1);
    this.nodeParent = new Int32Array(meta.nodes + 1);
    this.nodeEnd = new Uint32Array(meta.nodes + 1);
    this.outermost = new Uint8Array(meta.nodes + 1);
    /** @type {Code[]} */
    this.code = [];
    /** @type {CriticalPath | null} */
    this.path = null;
    /** Long waits. @type {import("./waits.js").Wait[]} */
    this.waits = [];
    /** @type {Map<number, Promise<EventData>>} */
    this.events = new Map();
  }

  /**
   * Reads what all events share.
   * @param {Blocks} blocks
   * @returns {Promise<Recording>}
   */
  static async open(blocks) {
    const [meta, ...parts] = await Promise.all(
      ["meta", "names", "commands", "frames", "threads", "pops", "sibs", "code", "path", "waits", "waited"].map(blocks));
    if (!meta) throw new DamagedPage("its column meta is missing");
    const recording = new Recording(blocks, parsed("meta", meta));
    if (recording.meta.format !== 1) throw new DamagedPage("it has a format of another version");
    const [names, commands, frames, threads, pops, sibs, code, path, waits, waited] = parts;
    recording.names = textsOf("names", names ?? new Uint8Array(), recording.meta.names);
    recording.commands = textsOf("commands", commands ?? new Uint8Array(), recording.meta.commands);
    recording.readFrames(columnOf("frames", frames));
    recording.readThreads(columnOf("threads", threads));
    recording.readTree(columnOf("pops", pops), columnOf("sibs", sibs));
    if (code) recording.code = parsed("code", code);
    if (path) recording.path = CriticalPath.read(columnOf("path", path), recording.meta.threads);
    if (waits) {
      recording.waits = readWaits(columnOf("waits", waits), waited ?? new Uint8Array(), recording.meta.threads);
    }
    return recording;
  }

  /** @param {Column} column */
  readFrames(column) {
    for (let frame = 0; frame < this.meta.names; ) {
      const module = column.next();
      const kind = column.next();
      const end = frame + column.next();
      if (end === frame || end > this.meta.names || module > this.meta.modules.length) {
        column.fail("has a run that does not fit");
      }
      this.module.fill(module, frame, end);
      this.kind.fill(kind, frame, end);
      frame = end;
    }
    column.end();
  }

  /** @param {Column} column */
  readThreads(column) {
    const { command, side, pid, tid } = this.threads;
    for (let thread = 0; thread < this.meta.threads; thread++) {
      command[thread] = column.next();
      side[thread] = column.next();
      pid[thread] = column.next() - 1;
      tid[thread] = column.next() - 1;
    }
    column.end();
  }

  /**
   * Reads the tree: how far up before each node, and how far from its sibling.
   * @param {Column} pops
   * @param {Column} sibs
   */
  readTree(pops, sibs) {
    const { nodeFrame, nodeParent, nodeEnd, outermost } = this;
    const size = nodeFrame.length;
    const open = new Uint32Array(this.meta.names);
    let last = 0;
    for (let node = 1; node < size; node++) {
      let sibling = -1;
      for (let up = pops.next(); up > 0; up--) {
        sibling = last;
        if (last === 0) pops.fail("leaves the tree");
        open[nodeFrame[last]] -= 1;
        last = nodeParent[last];
      }
      const frame = sibs.next() + (sibling < 0 ? 0 : nodeFrame[sibling]);
      if (frame >= this.meta.names) sibs.fail("has no such frame");
      nodeFrame[node] = frame;
      nodeParent[node] = last;
      outermost[node] = open[frame] === 0 ? 1 : 0;
      open[frame] += 1;
      last = node;
    }
    nodeParent[0] = -1;
    fillEnds(nodeParent, nodeEnd, size);
    pops.end();
    sibs.end();
  }

  /**
   * Returns an event's data.
   * @param {number} index
   * @returns {Promise<EventData>}
   */
  event(index) {
    let data = this.events.get(index);
    if (data === undefined) {
      data = this.readEvent(index);
      this.events.set(index, data);
    }
    return data;
  }

  /**
   * @param {number} index
   * @returns {Promise<EventData>}
   */
  async readEvent(index) {
    const meta = this.meta.events[index];
    if (meta === undefined) throw new DamagedPage(`it has no event ${index}`);
    const names = ["cells", "lens", "gaps", "counts", "sums", "weights", "extents", "ran"]
      .map((one) => one + index);
    const blocks = await Promise.all(names.map(this.blocks));
    const [cells, lens, gaps, counts, sums, weights, extents, ran] = blocks.map((block, i) =>
      columnOf(names[i], block));
    const { cellThread, cellStep, cellCpu } = this.readCells(cells, meta.cells);
    const size = this.nodeFrame.length;
    const start = new Uint32Array(size + 1);
    let entries = 0;
    for (let node = 1; node < size; node++) {
      start[node] = entries;
      entries += lens.next();
    }
    start[size] = entries;
    lens.end();
    if (entries !== meta.entries) lens.fail("does not add up");
    const cell = gaps.fill(new Uint32Array(entries));
    for (let node = 1; node < size; node++) {
      const end = start[node + 1];
      for (let i = start[node] + 1; i < end; i++) cell[i] += cell[i - 1] + 1;
      if (end > start[node] && cell[end - 1] >= meta.cells) {
        gaps.fail("has no such cell");
      }
    }
    gaps.end();
    const count = counts.fill(new Uint32Array(entries));
    for (let i = 0; i < entries; i++) count[i] += 1;
    counts.end();
    const equal = meta.quantum !== null;
    const weight = equal ? null : weights.fill(new Uint32Array(entries));
    weights.end();
    const tree = {
      size, frame: this.nodeFrame, parent: this.nodeParent, end: this.nodeEnd,
      outermost: this.outermost, base: null, start, cell, count, weight, groups: 0,
    };
    const bySide = this.meta.sides.map(() => sums.fill(new Float64Array(4 * this.meta.names)));
    sums.end();
    const unit = meta.quantum ?? meta.unit_weight;
    const cellWeight = cellWeights(tree, meta.cells);
    const { step, steps, threads } = this.meta;
    const times = meta.has_extents === true
      ? {
        ...readExtents(extents, cellStep, cellWeight, step / unit, steps),
        ran: Ran.read(ran, threads, step / unit, steps),
      }
      : { activity: null, extents: null, ran: null };
    if (meta.name === "critical-path" && this.path !== null) times.ran = Ran.ofPath(this.path, step / unit);
    return {
      index, meta, unit, tree, cellThread, cellStep, cellCpu, cellWeight, ...times, sums: bySide,
    };
  }

  /**
   * @param {Column} column
   * @param {number} count
   */
  readCells(column, count) {
    const cellThread = new Uint32Array(count);
    const cellStep = new Uint32Array(count);
    const cellCpu = new Uint32Array(count);
    let first = 0;
    for (let thread = 0; thread < this.meta.threads; thread++) {
      const end = first + column.next();
      if (end > count) column.fail("has too many cells");
      cellThread.fill(thread, first, end);
      column.fill(cellStep.subarray(first, end));
      for (let i = first + 1; i < end; i++) cellStep[i] += cellStep[i - 1];
      if (end > first && cellStep[end - 1] >= this.meta.steps) {
        column.fail("has no such step");
      }
      column.fill(cellCpu.subarray(first, end));
      first = end;
    }
    column.end();
    if (first !== count) column.fail("has too few cells");
    return { cellThread, cellStep, cellCpu };
  }

  /**
   * Returns a frame's module as people know it.
   * @param {number} frame
   * @returns {string}
   */
  moduleName(frame) {
    return this.meta.modules[this.module[frame] - 1]?.name ?? "";
  }
}

/**
 * Fills the ends of subtrees from the parents of a tree in preorder.
 * @param {Int32Array} parent
 * @param {Uint32Array} end
 * @param {number} size
 */
export function fillEnds(parent, end, size) {
  for (let node = 0; node < size; node++) end[node] = node + 1;
  for (let node = size - 1; node > 0; node--) {
    const up = parent[node];
    if (end[up] < end[node]) end[up] = end[node];
  }
}

/**
 * @param {string} name
 * @param {Uint8Array | null | undefined} bytes
 * @returns {Column}
 */
function columnOf(name, bytes) {
  return new Column(name, bytes ?? new Uint8Array());
}

/**
 * @param {string} name
 * @param {Uint8Array} bytes
 */
function parsed(name, bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new DamagedPage(`its column ${name} is no JSON`);
  }
}
