// What all parts of the page share: the recording, the state, and what follows from both. Nothing
// here touches the document, so that tests can read the same numbers.

import { clean, forms, SHOWN } from "./names.js";
import { changeStep, FILL } from "./colours.js";
import { amount, duration, percent } from "./format.js";
import { groupedTree, groupsOf } from "./group.js";
import { KIND } from "./model.js";
import { cellMasks, CellIndex, changeOf, FunctionSums, greatest, measure, nodeMask, sumFunctions, Totals, weightThrough } from "./filter.js";
import { Merge } from "./merge.js";
import { Columns } from "./series.js";
import { classesOf, fillsOf } from "./classes.js";
import { Finder } from "./finder.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */
/** @typedef {import("./model.js").Tree} Tree */
/** @typedef {import("./model.js").FrameChange} FrameChange */
/** @typedef {import("./group.js").GroupKind} GroupKind */
/** @typedef {import("./group.js").Groups} Groups */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./filter.js").Mask} Mask */

/** What is derived from an event once. */
class EventCache {
  /** @param {EventData} event */
  constructor(event) {
    this.event = event;
    this.cellWeight = event.cellWeight;
    /** Idle weight by side. @type {Map<number, number>} */
    this.idle = new Map();
    /** @type {Map<GroupKind, Groups>} */
    this.groups = new Map();
    /** @type {Map<string, {tree: Tree, whole: Totals}>} */
    this.trees = new Map();
    /** @type {Map<string, Merge>} */
    this.merges = new Map();
  }
}

/** The recording under a state. */
export class View {
  /**
   * @param {Recording} recording
   * @param {State} state
   * @param {EventData} event
   */
  constructor(recording, state, event) {
    this.recording = recording;
    this.state = state;
    /** @type {Map<number, EventCache>} */
    this.caches = new Map();
    /** @type {EventCache} */
    this.cache = this.useEvent(event);
    this.classes = classesOf(recording);
    this.fills = fillsOf(recording, event);
    this.finder = new Finder(recording.names);
    /** @type {Map<number, string[]>} */
    this.formsOf = new Map();
    /** 1 for each frame that the search finds. @type {Uint8Array | null} */
    this.matched = null;
    this.matches = 0;
    /** Cells and nodes shown. @type {Mask} */
    this.masks = new Uint8Array(0);
    /** Masks under which `a` and `b` were measured. @type {{a: Mask, b: Mask | null} | null} */
    this.measured = null;
    /** Filters that `nodes` follows from. */
    this.nodesKey = "";
    /** @type {CellIndex | null} */
    this.index = null;
    /** @type {Uint8Array | null} */
    this.nodes = null;
    const first = this.wholeTree(state.by);
    this.tree = first.tree;
    this.whole = first.whole;
    this.a = first.whole;
    /** @type {Totals | null} */
    this.b = null;
    this.sums = new FunctionSums(recording.meta.names);
    /** @type {FunctionSums | null} */
    this.otherSums = null;
    /** Marked changes of the event by frame. @type {{event: number, of: Map<number, FrameChange>} | null} */
    this.marked = null;
    this.search();
    this.refresh();
  }

  /**
   * Shows another event from the next `refresh` on.
   * @param {EventData} event
   * @returns {EventCache}
   */
  useEvent(event) {
    this.cache = this.caches.get(event.index) ?? new EventCache(event);
    this.caches.set(event.index, this.cache);
    return this.cache;
  }

  get event() {
    return this.cache.event;
  }

  /** Whether there are two recordings. */
  get hasTwo() {
    return this.recording.meta.sides.length > 1;
  }

  /** What `rep diff` says of two recordings; null without a second one. */
  get verdict() {
    const { verdicts } = this.recording.meta;
    const of = (/** @type {string} */ event) => verdicts.find((one) => one.event === event);
    return of(this.event.meta.name) ?? of("") ?? null;
  }

  /**
   * Returns the marked change of a frame: of whole recordings, so that there is none under filters.
   * @param {number} frame
   * @returns {FrameChange | null}
   */
  markedChange(frame) {
    if (this.state.filters.length > 0) return null;
    if (this.marked?.event !== this.event.index) {
      const changes = this.verdict?.changes ?? [];
      this.marked = { event: this.event.index, of: new Map(changes.map((one) => [one.frame, one])) };
    }
    return this.marked.of.get(frame) ?? null;
  }

  /**
   * @param {GroupKind} kind
   * @returns {Groups}
   */
  groups(kind) {
    const { groups, cellWeight } = this.cache;
    const found = groups.get(kind) ?? groupsOf(this.recording, this.event, cellWeight, kind);
    groups.set(kind, found);
    return found;
  }

  /**
   * Returns a tree with its unfiltered totals.
   * @param {GroupKind | "none"} by
   */
  wholeTree(by) {
    const found = this.cache.trees.get(by);
    if (found !== undefined) return found;
    const { event } = this;
    const tree = by === "none" ? event.tree
      : groupedTree(this.recording, event.tree, this.groups(by));
    const everything = new Uint8Array(event.cellThread.length).fill(1);
    const whole = measure(tree, everything, null, new Totals(tree.size, tree.weight !== null));
    const made = { tree, whole };
    if (this.cache.trees.size > 2) {
      // Large ones; keep the plain one and the latest.
      for (const key of this.cache.trees.keys()) if (key !== "none") this.cache.trees.delete(key);
      this.cache.merges.clear();
    }
    this.cache.trees.set(by, made);
    return made;
  }

  /** Graph of the flame graph's tab. */
  get graph() {
    const direction = this.state.inverted ? "up" : "down";
    return this.merge(`${this.state.by} ${direction}`, () =>
      Merge.all(this.tree, this.whole, direction));
  }

  /**
   * Graph of a function's callees (`down`) or callers (`up`).
   * @param {number} frame
   * @param {"down" | "up"} direction
   */
  through(frame, direction) {
    return this.merge(`${this.state.by} ${direction} ${frame}`, () =>
      Merge.through(this.tree, this.whole, frame, direction));
  }

  /**
   * @param {string} key
   * @param {() => Merge} make
   */
  merge(key, make) {
    const { merges } = this.cache;
    const found = merges.get(key);
    if (found !== undefined && found.tree === this.tree) return found;
    if (merges.size > 12) merges.clear();
    const made = make();
    merges.set(key, made);
    return made;
  }

  /** Measures everything anew under the state's filters. */
  refresh() {
    const { recording, state, event } = this;
    const { tree, whole } = this.wholeTree(state.by);
    if (tree !== this.tree || this.a === this.whole) {
      this.tree = tree;
      this.whole = whole;
      this.a = new Totals(tree.size, tree.weight !== null);
      this.b = null;
      this.measured = null;
    }
    const masks = cellMasks(recording, event, state);
    this.masks = masks.a;
    const ofNodes = state.filters.filter((one) => one.kind !== "time" && one.kind !== "lane");
    const key = JSON.stringify(ofNodes);
    if (key !== this.nodesKey) {
      this.nodesKey = key;
      this.nodes = this.neededNodes();
      this.measured = null;
    }
    const before = this.measured;
    this.measured = masks;
    if (state.filters.length === 0 && !this.hasTwo) this.a.copy(whole);
    else this.measure(before?.a ?? null, masks.a, this.a);
    this.sum(this.a, this.sums, state.side);
    if (masks.b === null) {
      this.b = null;
      this.otherSums = null;
      return;
    }
    this.b ??= new Totals(tree.size, tree.weight !== null);
    this.measure(before?.b ?? null, masks.b, this.b);
    this.otherSums ??= new FunctionSums(recording.meta.names);
    this.sum(this.b, this.otherSums, 1 - state.side);
  }

  /**
   * Measures the tree under a mask of cells, from the mask before where that is near.
   * @param {Mask | null} before
   * @param {Mask} mask
   * @param {Totals} out
   */
  measure(before, mask, out) {
    let changed = 0;
    for (let cell = 0; before !== null && cell < mask.length; cell++) {
      if (mask[cell] !== before[cell]) changed += 1;
    }
    if (before === null || changed > mask.length / 8) {
      measure(this.tree, mask, this.nodes, out);
      return;
    }
    if (this.index?.tree !== this.tree) this.index = new CellIndex(this.tree, mask.length);
    this.index.move(before, mask, this.nodes, out);
  }

  /**
   * Sums totals per function; without filters the sums of the whole recording, which know cut
   * stacks and exact periods.
   * @param {Totals} totals
   * @param {FunctionSums} sums
   * @param {number} side
   */
  sum(totals, sums, side) {
    const exact = this.event.sums[side];
    if (this.state.filters.length > 0) {
      sumFunctions(this.tree, totals, sums);
      return;
    }
    const { unit, tree } = this.event;
    const weighted = tree.weight !== null;
    for (let frame = 0; frame < sums.self.length; frame++) {
      const at = frame * 4;
      const selfSamples = exact[at];
      const samples = exact[at + 2];
      sums.self[frame] = weighted ? exact[at + 1] / unit : selfSamples;
      sums.total[frame] = weighted ? exact[at + 3] / unit : samples;
      sums.selfSamples[frame] = selfSamples;
      sums.samples[frame] = samples;
    }
  }

  /** Mask of the nodes that pass the filters for functions and idle time. */
  neededNodes() {
    const needed = [];
    for (const filter of this.state.filters) {
      if (filter.kind === "through") {
        const frames = new Uint8Array(this.recording.meta.names);
        frames[filter.frame] = 1;
        needed.push(frames);
      } else if (filter.kind === "only") {
        needed.push(this.finder.find(filter.text, filter.typed));
      }
    }
    return nodeMask(this.recording, needed, this.state.hidesIdle());
  }

  /** Weight of idle time in the whole recording: of idle tasks and of the idle function. */
  get idleWeight() {
    const { recording, event, state } = this;
    const key = state.side;
    const known = this.cache.idle.get(key);
    if (known !== undefined) return known;
    const { pid, side } = recording.threads;
    const { tree, cellThread } = event;
    const values = tree.weight ?? tree.count;
    const busy = nodeMask(recording, [], true);
    let weight = 0;
    cellThread.forEach((thread, cell) => {
      if (pid[thread] === 0 && side[thread] === key) weight += this.cache.cellWeight[cell];
    });
    for (let node = 1; busy !== null && node < tree.size; node++) {
      if (busy[node] === 1) continue;
      for (let i = tree.start[node]; i < tree.start[node + 1]; i++) {
        const thread = cellThread[tree.cell[i]];
        if (side[thread] === key && pid[thread] !== 0) weight += values[i];
      }
    }
    this.cache.idle.set(key, weight);
    return weight;
  }

  /** Weight of everything of the side shown, without any filter. */
  get wholeWeight() {
    const { samples, period } = this.event.meta;
    const { side } = this.state;
    return this.event.tree.weight === null ? samples[side] : period[side] / this.event.unit;
  }

  /**
   * Returns the functions with most in themselves, with names if any has one.
   * @param {number} most
   */
  hottest(most) {
    const { kind } = this.recording;
    const named = greatest(this.sums.self, most, (frame) =>
      kind[frame] !== KIND.cut && kind[frame] !== KIND.unnamed);
    return named.length > 0 ? named
      : greatest(this.sums.self, most, (frame) => kind[frame] !== KIND.cut);
  }

  /** Finds anew what the search finds. */
  search() {
    const { search, typed } = this.state;
    const { finder } = this;
    this.matched = search === "" ? null : finder.find(search, typed);
    this.matches = 0;
    if (this.matched !== null) for (const one of this.matched) this.matches += one;
  }

  /** Weight of what the search finds, each sample counted once. */
  matchedWeight() {
    return this.matched === null ? 0 : weightThrough(this.tree, this.a, this.matched);
  }

  /** Last step of the side shown, and one more. */
  get steps() {
    const { side_steps: ofSides, steps } = this.recording.meta;
    return Math.max(1, ofSides[this.state.side] ?? steps);
  }

  /** Steps that the timeline shows. */
  get window() {
    const { window } = this.state;
    if (window === null || window.from >= this.steps) return { from: 0, to: this.steps };
    return { from: window.from, to: Math.min(window.to, this.steps) };
  }

  /**
   * @param {number} width
   * @returns {Columns}
   */
  columns(width) {
    const { from, to } = this.window;
    const samples = (this.event.meta.samples[this.state.side] * (to - from)) / this.steps;
    // Times that reach from one moment to another need no samples to be seen.
    return new Columns(from, to, width, this.event.extents === null ? samples : Infinity);
  }

  /**
   * Returns a frame's or group's raw name.
   * @param {number} frame
   */
  rawName(frame) {
    if (frame < 0) return "all";
    const { names, meta } = this.recording;
    if (frame < meta.names) return names[frame] ?? "";
    const by = this.state.by === "none" ? "command" : this.state.by;
    return this.groups(by).labels[frame - meta.names] ?? "";
  }

  /**
   * Returns a frame's name as it is shown, cut after a number of characters.
   * @param {number} frame
   * @param {number} [limit]
   */
  name(frame, limit = SHOWN.row) {
    const name = clean(this.rawName(frame), limit);
    return name === "" ? "(empty name)" : name;
  }

  /**
   * Returns a frame's forms for boxes, longest first.
   * @param {number} frame
   */
  shortNames(frame) {
    if (frame < 0 || frame >= this.recording.meta.names) return [this.name(frame, SHOWN.box)];
    let found = this.formsOf.get(frame);
    if (found === undefined) {
      found = forms(this.rawName(frame));
      this.formsOf.set(frame, found);
    }
    return found;
  }

  /**
   * Returns the fill of a frame or group.
   * @param {number} frame
   */
  fill(frame) {
    return this.fills[frame] ?? FILL.group;
  }

  /**
   * Returns a weight in units of the event as people read it.
   * @param {number} weight
   */
  amount(weight) {
    return amount(weight * this.event.unit, this.event.meta.unit);
  }

  /** Nanoseconds of what is shown, and of what it is compared with. */
  lengths() {
    const { sides, step } = this.recording.meta;
    const own = sides[this.state.side]?.duration ?? this.steps * step;
    const time = this.state.time();
    const shown = time === null ? own : (time.to - time.from) * step;
    const other = this.hasTwo ? sides[1 - this.state.side]?.duration ?? own
      : time === null ? own : Math.max(own - shown, step);
    return { shown, other };
  }

  /** Whether amounts a second are compared: of one recording with itself. */
  get isPerSecond() {
    return this.state.perSecond && !this.hasTwo;
  }

  /**
   * Returns the shares of a function, or of a box's figures, in what is shown and in the rest: of
   * all, or of the time that passed. What changed between two recordings `rep diff` says.
   * @param {number} frame
   * @param {{weight: number, samples: number}} a
   * @param {{weight: number, samples: number}} b
   */
  compareFigures(frame, a, b) {
    const rate = this.isPerSecond;
    const { shown, other } = this.lengths();
    const { unit } = this.event;
    const allA = rate ? shown / unit : this.a.all;
    const allB = rate ? other / unit : this.b?.all ?? 0;
    const sign = this.state.side === 0 ? 1 : -1;
    const change = this.hasTwo ? sign * (this.markedChange(frame)?.change ?? 0) : changeOf(
      { ...a, all: allA, allSamples: this.a.allSamples },
      { ...b, all: allB, allSamples: this.b?.allSamples ?? 0 });
    return {
      a: allA > 0 ? a.weight / allA : 0,
      b: allB > 0 ? b.weight / allB : 0,
      change,
      step: changeStep(change),
    };
  }

  /**
   * Returns the change of a function's total.
   * @param {number} frame
   */
  functionChange(frame) {
    const { sums, otherSums } = this;
    return this.compareFigures(frame,
      { weight: sums.total[frame], samples: sums.samples[frame] },
      { weight: otherSums?.total[frame] ?? 0, samples: otherSums?.samples[frame] ?? 0 });
  }

  /**
   * Returns a share of a comparison as text: of all, or per second.
   * @param {number} share
   */
  shareText(share) {
    if (!this.isPerSecond) return percent(share);
    if (this.event.meta.unit === "ns") return duration(share * 1e9) + "/s";
    return amount(share * 1e9, this.event.meta.unit) + "/s";
  }

  /** What the shown is compared with, in words. */
  get otherName() {
    if (!this.hasTwo) return "the rest";
    return clean(this.recording.meta.sides[1 - this.state.side]?.name ?? "", 60);
  }
}
