// Times that reach over steps, against the times themselves.

import assert from "node:assert/strict";
import test from "node:test";
import { cellMasks, measure, Totals } from "../../report/src/picture/page/web/filter.js";
import { groupsOf } from "../../report/src/picture/page/web/group.js";
import { boxesOf, staysOf } from "../../report/src/picture/page/web/moments.js";
import { Recording } from "../../report/src/picture/page/web/model.js";
import { State } from "../../report/src/picture/page/web/state.js";
import { activitySeries, Columns, Lanes } from "../../report/src/picture/page/web/series.js";
import { waitAt } from "../../report/src/picture/page/web/waits.js";
import { columnsOf } from "./made.mjs";
import { waits } from "./models.mjs";

test("what threads did has its true length in every range, lane and course", async () => {
  const { made, times } = waits(7);
  const columns = columnsOf(made);
  const recording = await Recording.open(async (name) => columns.get(name) ?? null);
  const event = await recording.event(0);
  assert.ok(event.extents !== null && event.ran !== null);
  const [step, steps] = [made.step ?? 1, made.steps ?? 1];
  /** @param {number} activity @param {number | null} thread @param {number} from @param {number} to In ns. */
  const truth = (activity, thread, from, to) => times
    .filter((one) => one.activity === activity && (thread === null || one.thread === thread))
    .reduce((sum, one) => sum + Math.max(0, Math.min(one.to, to) - Math.max(one.from, from)), 0);
  /** @param {number} found @param {number} wanted @param {number} edges @param {string} what */
  const near = (found, wanted, edges, what) =>
    assert.ok(Math.abs(found - wanted) <= (edges * step) / 64, `${what}: ${found}, not ${wanted}`);
  const all = new Uint8Array(event.cellThread.length).fill(1);
  const threads = new Uint8Array(recording.meta.threads).fill(1);
  const series = activitySeries(event, event.extents, all, null, threads, new Columns(0, steps, steps, Infinity));
  for (let at = 0; at < steps; at += 13) {
    for (const activity of [0, 1, 2]) {
      const found = (series[activity]?.[at] ?? 0) * event.unit;
      near(found, truth(activity, null, at * step, (at + 1) * step), 4 * made.threads.length, `${activity} at ${at}`);
    }
  }
  const lanes = new Lanes(recording, event, groupsOf(recording, event, event.cellWeight, "thread"), all);
  for (const [from, to] of [[0, steps], [10, 57], [100, 101], [33, 200]]) {
    const shown = new Columns(from, to, 9, Infinity);
    lanes.groups.keys.forEach((tid, group) => {
      const courses = lanes.courses(group, shown);
      for (let column = 0; column < shown.count; column++) {
        const range = [shown.first(column) * step, shown.first(column + 1) * step];
        for (const activity of [0, 1, 2]) {
          near((courses[activity]?.[column] ?? 0) * event.unit, truth(activity, tid - 1, range[0] ?? 0, range[1] ?? 0), 3,
            `${activity} of ${tid} from ${range}`);
        }
      }
    });
    // What is brushed weighs as much, and its stacks are those that reach into it.
    const state = new State();
    state.add({ kind: "time", from, to });
    const { tree } = event;
    const totals = measure(tree, cellMasks(recording, event, state).a, null, new Totals(tree.size, true));
    const waited = [1, 2].reduce((sum, one) => sum + truth(one, null, from * step, to * step), 0);
    const sampled = made.events[0].samples.filter((one) => one.activity === 0 && one.step >= from && one.step < to);
    near(totals.all * event.unit, waited + sampled.length * step, 4 * made.threads.length, `waits from ${from} to ${to}`);
    assert.ok(Number.isInteger(totals.allSamples));
  }
});

test("the stays of a thread are in order, and long waits where they were", async () => {
  const { made, times } = waits(11);
  const columns = columnsOf(made);
  const recording = await Recording.open(async (name) => columns.get(name) ?? null);
  const event = await recording.event(0);
  const step = made.step ?? 1;
  for (const [thread, { tid }] of made.threads.entries()) {
    const stays = staysOf(recording, event, tid, 0);
    assert.equal(stays.length, event.tree.cell.filter((cell) => event.cellThread[cell] === thread).length);
    stays.forEach((stay, i) => {
      assert.ok(stay.to >= stay.from && stay.from >= (stays[i - 1]?.to ?? 0) - 1e-9, `${i}: ${JSON.stringify(stay)}`);
    });
    for (const one of times.filter((time) => time.thread === thread && time.activity > 0 && time.to - time.from > 2 * step)) {
      const found = stays.find((stay) => Math.abs(stay.to - one.to / step) < 0.05 && Math.abs(stay.from - one.from / step) < 0.05);
      assert.equal(found?.activity, one.activity, JSON.stringify(one));
    }
    // The callers of neighbours are one box, and boxes of a row do not overlap.
    const boxes = boxesOf(recording, stays, { from: 20, to: 90 }, 700);
    for (const depth of [0, 1]) {
      const row = boxes.filter((box) => box.depth === depth);
      assert.ok(row.length > 3);
      row.forEach((box, i) => assert.ok(box.left >= (row[i - 1]?.right ?? 0) - 0.41 && box.right <= 700));
    }
    assert.ok(boxes.filter((box) => box.depth === 0).length < boxes.filter((box) => box.depth === 1).length);
  }
});

test("samples of a clock are as long as what they stand for, of other events up to the next", async () => {
  /** @param {"ns" | "events"} unit @param {number[]} steps */
  const staysAt = async (unit, steps) => {
    const stack = [{ name: "main", module: "app" }];
    const samples = steps.map((step) => ({ thread: 0, step, cpu: 0, stack }));
    const made = { threads: [{ command: "app", pid: 1, tid: 1 }], step: 1000, steps: 100,
      events: [{ name: "e", unit, quantum: 4000, samples }] };
    const columns = columnsOf(made);
    const recording = await Recording.open(async (name) => columns.get(name) ?? null);
    return staysOf(recording, await recording.event(0), 1, 0).map(({ from, to }) => [from, to]);
  };
  assert.deepEqual(await staysAt("ns", [9, 13, 50]), [[6, 10], [10, 14], [47, 51]]);
  assert.deepEqual(await staysAt("events", [9, 19, 30, 60]), [[0, 10], [10, 20], [20, 31], [44.5, 61]]);
});

test("long waits have what they are for and who ended them", async () => {
  const { made, named } = waits(7);
  const columns = columnsOf({ ...made, waits: named });
  const recording = await Recording.open(async (name) => columns.get(name) ?? null);
  assert.equal(recording.waits.length, named.length);
  const { tid } = recording.threads;
  for (const [i, one] of named.entries()) {
    const found = recording.waits[i];
    assert.deepEqual(found, { ...one, from: one.from / 256, woken: one.woken / 256, to: one.to / 256 });
    if (one.to === one.from) continue;
    const time = { from: one.from / 256, to: one.to / 256 };
    assert.equal(waitAt(recording, tid[one.thread] ?? 0, 0, time), found);
    assert.equal(waitAt(recording, tid[one.thread] ?? 0, 0, { from: 0, to: 512 }), null);
    assert.equal(waitAt(recording, tid[one.thread] ?? 0, 1, time), null);
  }
  for (const [name, bytes] of [["waits", new Uint8Array([1, 1, 9, 0, 0, 0, 0, 0])], ["waited", new Uint8Array()]]) {
    const damaged = new Map(columns).set(String(name), /** @type {Uint8Array} */ (bytes));
    await assert.rejects(Recording.open(async (of) => damaged.get(of) ?? null), /its column/);
  }
});

test("lanes of the critical path have its pieces where they were, one at a time", async () => {
  const { made } = waits(7);
  const path = [[0, 0, 5, 300], [2, 4, 0, 40], [2, 1, 10, 900], [1, 0, 0, 2000]].map(([thread, activity, gap, length]) =>
    ({ thread: thread ?? 0, activity: activity ?? 0, gap: gap ?? 0, length: length ?? 0 }));
  const columns = columnsOf({ ...made, events: made.events.map((one) => ({ ...one, name: "critical-path" })), path });
  const recording = await Recording.open(async (name) => columns.get(name) ?? null);
  const event = await recording.event(0);
  assert.ok(event.extents !== null && recording.path !== null);
  const all = new Uint8Array(event.cellThread.length).fill(1);
  const threads = new Uint8Array(recording.meta.threads).fill(1);
  const series = activitySeries(event, event.extents, all, null, threads, new Columns(0, 20, 20, Infinity));
  const full = (made.step ?? 1) / event.unit;
  for (let step = 0; step < 20; step++) {
    /** @type {Map<number, number>} */
    const wanted = new Map();
    let at = 0;
    for (const one of path) {
      at += one.gap;
      const inside = Math.max(0, Math.min(at + one.length, (step + 1) * 256) - Math.max(at, step * 256));
      at += one.length;
      wanted.set(one.activity, (wanted.get(one.activity) ?? 0) + inside / 256);
    }
    series.forEach((one, activity) => {
      const found = (one[step] ?? 0) / full;
      assert.ok(Math.abs(found - (wanted.get(activity) ?? 0)) < 0.01, `${activity} in ${step}: ${found}`);
    });
  }
  assert.equal(recording.path.lengthOf(2, 0, 256), 940 / 256);
});
