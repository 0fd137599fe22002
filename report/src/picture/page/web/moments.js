// What one thread did, in order of time: its samples and waits one after the other, and the boxes
// that their stacks are over time. Nothing here touches the document.

import { ACTIVITY } from "./extents.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */

/**
 * A stack of a thread from one moment to another, in steps.
 * @typedef {object} Stay
 * @property {number} node
 * @property {number} from
 * @property {number} to
 * @property {number} activity
 */

/**
 * A function of a thread's stacks from one moment to another, in pixels.
 * @typedef {object} StayBox
 * @property {number} depth
 * @property {number} frame
 * @property {number} node
 * @property {number} left
 * @property {number} right
 * @property {boolean} isWait
 */

/** Gap between two samples that are taken for neighbours, in parts of their distance. */
const NEIGHBOURS = 1.5;

/**
 * Returns the stacks of a thread in order.
 * @param {Recording} recording
 * @param {EventData} event
 * @param {number} tid
 * @param {number} side
 * @returns {Stay[]}
 */
export function staysOf(recording, event, tid, side) {
  const { tree, cellThread, cellStep, activity, extents } = event;
  const { threads, meta } = recording;
  const values = tree.weight ?? tree.count;
  const perStep = meta.step / event.unit;
  /** @type {{node: number, cell: number, step: number, isLong: boolean, activity: number, length: number}[]} */
  const found = [];
  for (let node = 1; node < tree.size; node++) {
    for (let i = tree.start[node]; i < tree.start[node + 1]; i++) {
      const cell = tree.cell[i];
      const thread = cellThread[cell];
      if (threads.tid[thread] !== tid || threads.side[thread] !== side) continue;
      found.push({
        node, cell, step: cellStep[cell], isLong: (extents?.more[cell] ?? 0) > 0,
        activity: activity?.[cell] ?? ACTIVITY.running, length: values[i] / perStep,
      });
    }
  }
  found.sort((a, b) => a.step - b.step || Number(a.isLong) - Number(b.isLong) || a.activity - b.activity || a.node - b.node);
  if (event.meta.unit !== "ns") {
    const gap = usualGap(found.map((one) => one.step));
    for (const one of found) one.length = gap * NEIGHBOURS;
  }
  /** @type {Stay[]} */
  const stays = [];
  for (let first = 0; first < found.length; ) {
    const { step } = found[first];
    let next = first;
    while (next < found.length && found[next].step === step && !found[next].isLong) next += 1;
    const isLong = next < found.length && found[next].step === step;
    const end = isLong && extents !== null ? step + 1 - (extents.head[found[next].cell] + 1) / 256 : step + 1;
    placeBefore(stays, found.slice(first, next), end);
    if (isLong && extents !== null) {
      const { node, activity: what, cell } = found[next];
      const last = step + extents.more[cell];
      const rest = (extents.weight[cell] - extents.before(cell, last)) / extents.full;
      stays.push({ node, activity: what, from: Math.max(end, stays.at(-1)?.to ?? 0), to: last + Math.min(rest, 1) });
      next += 1;
    }
    first = next;
  }
  return stays;
}

/**
 * Adds what ended in one step, from its end backwards: each as long as it was, if there is room.
 * @param {Stay[]} stays
 * @param {{node: number, activity: number, length: number}[]} found
 * @param {number} end
 */
function placeBefore(stays, found, end) {
  const before = stays.at(-1)?.to ?? 0;
  let total = 0;
  for (const one of found) total += one.length;
  const room = Math.max(end - before, 0);
  const scale = total > room ? room / total : 1;
  let at = end - total * scale;
  // Samples are not taken to the nanosecond.
  if (at - before < 1 + (found[0]?.length ?? 0) / 10) at = before;
  const stretch = total > 0 ? Math.max(end - at, 0) / total : 0;
  for (const { node, activity, length } of found) {
    const to = at + length * (activity === ACTIVITY.running ? stretch : Math.min(stretch, scale));
    stays.push({ node, activity, from: at, to });
    at = to;
  }
}

/**
 * Returns the median distance of moments.
 * @param {number[]} steps Ascending.
 */
function usualGap(steps) {
  const gaps = steps.slice(1).map((step, i) => step - (steps[i] ?? 0)).sort((a, b) => a - b);
  return Math.max(gaps[gaps.length >> 1] ?? 1, 1);
}

/**
 * Returns the boxes of a range of steps: neighbours with the same callers are one.
 * @param {Recording} recording
 * @param {Stay[]} stays
 * @param {{from: number, to: number}} range
 * @param {number} width In pixels.
 * @returns {StayBox[]}
 */
export function boxesOf(recording, stays, range, width) {
  const { nodeFrame, nodeParent } = recording;
  const scale = width / (range.to - range.from);
  /** @type {StayBox[]} */
  const boxes = [];
  /** Boxes that the latest stack is in. @type {StayBox[]} */
  const open = [];
  let last = -Infinity;
  for (let i = firstAfter(stays, range.from); i < stays.length; i++) {
    const { node, from, to, activity } = stays[i];
    if (from >= range.to) break;
    const left = Math.max((from - range.from) * scale, 0);
    const right = Math.min((to - range.from) * scale, width);
    // What cannot be seen apart from the one before.
    if (right - left < 0.4 && right < last + 0.4) continue;
    /** @type {number[]} */
    const path = [];
    for (let at = node; at > 0; at = nodeParent[at]) path.push(at);
    path.reverse();
    const isWait = activity !== ACTIVITY.running;
    let shared = 0;
    const touches = left <= last + 0.5;
    while (touches && shared < open.length && open[shared].node === path[shared]) shared += 1;
    open.length = shared;
    for (const box of open) {
      box.right = right;
      box.isWait &&= isWait;
    }
    for (let depth = shared; depth < path.length; depth++) {
      const box = { depth, frame: nodeFrame[path[depth]], node: path[depth], left, right, isWait };
      open.push(box);
      boxes.push(box);
    }
    last = right;
  }
  return boxes;
}

/**
 * Returns what a thread did at a moment, if that is known.
 * @param {Stay[]} stays
 * @param {number} moment
 * @returns {Stay | null}
 */
export function stayAt(stays, moment) {
  const stay = stays[firstAfter(stays, moment)];
  return stay !== undefined && stay.from <= moment ? stay : null;
}

/**
 * Returns the first stack that ends after a moment.
 * @param {Stay[]} stays
 * @param {number} moment
 */
export function firstAfter(stays, moment) {
  let [low, high] = [0, stays.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((stays[middle]?.to ?? 0) > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}
