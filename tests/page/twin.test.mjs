// Totals, filters, merged boxes and groups against naive twins that count the model's samples.

import assert from "node:assert/strict";
import test from "node:test";
import { changeOf, greatest } from "../../report/src/picture/page/web/filter.js";
import { Recording } from "../../report/src/picture/page/web/model.js";
import { State } from "../../report/src/picture/page/web/state.js";
import { View } from "../../report/src/picture/page/web/view.js";
import { layOut, pathOf, boxAt, spanOf } from "../../report/src/picture/page/web/layout.js";
import { Columns } from "../../report/src/picture/page/web/series.js";
import { columnsOf } from "./made.mjs";
import { program, random } from "./models.mjs";

/** @typedef {import("./made.mjs").MadeSample} MadeSample */
/** @typedef {import("../../report/src/picture/page/web/merge.js").Box} Box */
/** @typedef {import("../../report/src/picture/page/web/merge.js").Merge} Merge */
/** @typedef {import("../../report/src/picture/page/web/state.js").Filter} Filter */

const MODEL = program(1500, { sides: 2, seed: 3 });
const COLUMNS = columnsOf(MODEL);

/**
 * @param {Filter[]} filters
 * @param {(state: State) => void} [act]
 * @param {number} [event]
 */
async function viewOf(filters, act, event = 0) {
  const recording = await Recording.open(async (name) => COLUMNS.get(name) ?? null);
  const state = new State();
  state.event = event;
  for (const filter of filters) state.add(filter);
  act?.(state);
  return new View(recording, state, await recording.event(event));
}

/** @param {MadeSample} sample @param {number} event */
function weightOf(sample, event) {
  return event === 0 ? 1 : (sample.weight ?? 0) / 250_000;
}

/**
 * Sums of functions by counting samples one by one.
 * @param {(sample: MadeSample) => boolean} accepts
 * @param {number} [event]
 */
function naive(accepts, event = 0) {
  /** @type {Map<string, number[]>} */
  const sums = new Map();
  for (const sample of MODEL.events[event].samples.filter(accepts)) {
    const keys = sample.stack.map((frame) => `${frame.module}\t${frame.name}`);
    const weight = weightOf(sample, event);
    for (const key of new Set(keys)) {
      const sum = sums.get(key) ?? [0, 0];
      sum[1] += weight;
      if (key === keys[keys.length - 1]) sum[0] += weight;
      sums.set(key, sum);
    }
  }
  return sums;
}

/**
 * @param {View} view
 * @param {import("../../report/src/picture/page/web/filter.js").FunctionSums | null} [of]
 */
function sumsOf(view, of = view.sums) {
  const { recording } = view;
  /** @type {Map<string, number[]>} */
  const out = new Map();
  recording.names.forEach((name, frame) => {
    if (of === null || of.total[frame] === 0) return;
    out.set(`${recording.moduleName(frame)}\t${name}`, [of.self[frame], of.total[frame]]);
  });
  return out;
}

/** @param {Map<string, number[]>} sums */
const sorted = (sums) => [...sums].sort((a, b) => (a[0] < b[0] ? -1 : 1));

/** @param {MadeSample} sample */
const sideOf = (sample) => MODEL.threads[sample.thread].side ?? 0;

test("sums of functions equal a count of the samples, under every filter", async () => {
  const { names } = (await viewOf([])).recording;
  const malloc = names.indexOf("malloc");
  /** @type {[Filter[], (sample: MadeSample) => boolean][]} */
  const cases = [
    [[], () => true],
    [[{ kind: "time", from: 100, to: 333 }], (one) => one.step >= 100 && one.step < 333],
    [[{ kind: "lane", lane: "thread", key: 201 }], (one) => MODEL.threads[one.thread].tid === 201],
    [[{ kind: "lane", lane: "process", key: 300 }], (one) => MODEL.threads[one.thread].pid === 300],
    [[{ kind: "lane", lane: "cpu", key: 1 }], (one) => one.cpu === 1],
    [[{ kind: "through", frame: malloc }], (one) => one.stack.some((frame) => frame.name === "malloc")],
    [[{ kind: "only", text: "PARSE" }], (one) => one.stack.some((frame) => frame.name.includes("parse"))],
    [[{ kind: "idle" }], (one) => MODEL.threads[one.thread].pid !== 0],
    [[{ kind: "idle" }, { kind: "time", from: 3, to: 400 }, { kind: "through", frame: malloc }, { kind: "lane", lane: "cpu", key: 0 }],
      (one) => one.cpu === 0 && one.step >= 3 && one.step < 400 && one.stack.some((frame) => frame.name === "malloc")],
  ];
  for (const event of [0, 1]) {
    for (const [filters, accepts] of cases) {
      const view = await viewOf(filters, undefined, event);
      const wanted = naive((one) => sideOf(one) === 0 && accepts(one), event);
      assert.deepEqual(sorted(sumsOf(view)), sorted(wanted), JSON.stringify({ event, filters }));
    }
  }
});

test("a range that moves gives what it gives at once", async () => {
  const next = random(11);
  for (const event of [0, 1]) {
    const view = await viewOf([{ kind: "only", text: "run" }], undefined, event);
    for (let round = 0; round < 60; round++) {
      const from = round % 9 === 0 ? Math.floor(next() * 400) : Math.max(0, (view.state.time()?.from ?? 0) + Math.floor(next() * 9) - 4);
      const to = from + 1 + Math.floor(next() * 30);
      if (round % 20 === 19) view.state.filters = [];
      else view.state.add({ kind: "time", from, to });
      if (round % 13 === 5) view.state.by = round % 2 === 0 ? "none" : "thread";
      view.refresh();
      const fresh = await viewOf(view.state.filters, (state) => (state.by = view.state.by), event);
      for (const of of /** @type {const} */ (["self", "total", "selfSamples", "samples"])) {
        assert.deepEqual(view.a[of], fresh.a[of], `${round} ${of}`);
        assert.deepEqual(view.b?.[of], fresh.b?.[of], `${round} ${of}`);
        assert.deepEqual(view.sums[of], fresh.sums[of], `${round} ${of}`);
      }
    }
  }
});

test("events are switched without a trace of the one before", async () => {
  const view = await viewOf([]);
  for (const event of [1, 0, 1]) {
    view.useEvent(await view.recording.event(event));
    for (const filters of [[], [{ kind: /** @type {const} */ ("time"), from: 9, to: 400 }]]) {
      view.state.filters = filters;
      view.refresh();
      const accepts = (/** @type {MadeSample} */ one) =>
        sideOf(one) === 0 && (filters.length === 0 || (one.step >= 9 && one.step < 400));
      assert.deepEqual(sorted(sumsOf(view)), sorted(naive(accepts, event)));
      const samples = MODEL.events[event].samples.filter(accepts).length;
      assert.equal(view.a.allSamples, samples);
      assert.equal(view.sums.selfSamples.reduce((a, b) => a + b, 0), samples);
    }
  }
});

test("the other recording, and the rest of the time, are what is left", async () => {
  const two = await viewOf([]);
  assert.deepEqual(sorted(sumsOf(two, two.otherSums)), sorted(naive((one) => sideOf(one) === 1)));
  const swapped = await viewOf([], (state) => (state.side = 1));
  assert.deepEqual(sorted(sumsOf(swapped)), sorted(naive((one) => sideOf(one) === 1)));
  // One recording: the rest.
  const single = program(800, { seed: 5 });
  const columns = columnsOf(single);
  const recording = await Recording.open(async (name) => columns.get(name) ?? null);
  const state = new State();
  state.add({ kind: "time", from: 50, to: 90 });
  state.compare = true;
  const view = new View(recording, state, await recording.event(0));
  assert.equal(view.a.all + (view.b?.all ?? 0), single.events[0].samples.length);
  assert.equal(view.a.all, single.events[0].samples.filter((one) => one.step >= 50 && one.step < 90).length);
});

/**
 * Returns all boxes of a graph as text: path to weight.
 * @param {Merge} merge
 * @param {View} view
 * @param {number} depth
 */
function boxesOf(merge, view, depth) {
  /** @type {Map<string, number>} */
  const out = new Map();
  /** @param {Box} box @param {string} path */
  const walk = (box, path) => {
    for (const child of box.depth < depth ? merge.childrenOf(box) : []) {
      const key = `${path}/${view.rawName(child.frame)}@${view.recording.moduleName(child.frame)}`;
      const weight = merge.weigh(child, view.a);
      if (weight > 0) out.set(key, weight);
      walk(child, key);
    }
  };
  walk(merge.root, "");
  return out;
}

/**
 * @param {(sample: MadeSample) => string[] | null} path
 * @param {number} depth
 */
function naiveBoxes(path, depth) {
  /** @type {Map<string, number>} */
  const out = new Map();
  for (const sample of MODEL.events[0].samples) {
    const parts = sideOf(sample) === 0 ? path(sample) : null;
    let key = "";
    for (const part of parts?.slice(0, depth) ?? []) {
      key += "/" + part;
      out.set(key, (out.get(key) ?? 0) + 1);
    }
  }
  return out;
}

/** @param {MadeSample} sample */
const frames = (sample) => sample.stack.map((frame) => `${frame.name}@${frame.module}`);

/** @param {Map<string, number>} boxes */
const list = (boxes) => [...boxes].sort((a, b) => (a[0] < b[0] ? -1 : 1));

test("boxes equal a naive merge: plain, grouped, inverted, callers, callees", async () => {
  for (const by of /** @type {const} */ (["none", "command", "process", "thread", "cpu"])) {
    /** @param {MadeSample} sample @returns {string[]} */
    const group = (sample) => {
      const { command, pid, tid } = MODEL.threads[sample.thread];
      if (by === "none") return [];
      if (by === "cpu") return [`CPU ${sample.cpu}@`];
      return [by === "command" ? `${command}@` : `${command} ${by === "process" ? pid : tid}@`];
    };
    for (const inverted of [false, true]) {
      const view = await viewOf([], (state) => {
        state.by = by;
        state.inverted = inverted;
      });
      const wanted = naiveBoxes((one) =>
        [...group(one), ...(inverted ? frames(one).reverse() : frames(one))], 6);
      assert.deepEqual(list(boxesOf(view.graph, view, 6)), list(wanted), `${by} ${inverted}`);
    }
    const view = await viewOf([], (state) => (state.by = by));
    for (const name of ["malloc", "main", "handle_mm_fault", "rustc::parse::run", "parse_1"]) {
      const frame = view.recording.names.indexOf(name);
      const key = `${name}@${view.recording.moduleName(frame)}`;
      const callees = naiveBoxes((one) => {
        const at = frames(one).indexOf(key);
        return at < 0 ? null : frames(one).slice(at + 1);
      }, 5);
      assert.deepEqual(list(boxesOf(view.through(frame, "down"), view, 5)), list(callees), name);
      const callers = naiveBoxes((one) => {
        const at = frames(one).indexOf(key);
        return at < 0 ? null : frames(one).slice(0, at).reverse();
      }, 5);
      assert.deepEqual(list(boxesOf(view.through(frame, "up"), view, 5)), list(callers), name);
    }
  }
});

test("a search counts each sample once", async () => {
  for (const by of /** @type {const} */ (["none", "thread"])) {
    const view = await viewOf([], (state) => {
      state.search = "run";
      state.by = by;
    });
    view.search();
    const wanted = MODEL.events[0].samples.filter((one) =>
      sideOf(one) === 0 && one.stack.some((frame) => frame.name.includes("run"))).length;
    assert.equal(view.matchedWeight(), wanted);
  }
});

test("an expression counts only if it was typed, and a bad one finds nothing", async () => {
  const view = await viewOf([]);
  view.state.search = "/^malloc$/";
  view.search();
  assert.equal(view.matches, 0);
  view.state.typed = true;
  view.search();
  assert.equal(view.matches, 1);
  const only = await viewOf([{ kind: "only", text: "/^malloc$/", typed: true }]);
  assert.equal(only.a.all, MODEL.events[0].samples.filter((one) =>
    sideOf(one) === 0 && one.stack.some((frame) => frame.name === "malloc")).length);
  assert.equal((await viewOf([{ kind: "only", text: "/^malloc$/" }])).a.all, 0);
  view.state.search = "/(/";
  view.search();
  assert.deepEqual([view.matches, view.finder.error], [0, "not a regular expression"]);
});

test("the layout covers the whole width in each row, and nothing vanishes", async () => {
  const view = await viewOf([]);
  const merge = view.graph;
  const layout = layOut(merge, view.a, { from: 0, to: 1 }, 900, 100);
  assert.ok(layout.isWhole);
  const shown = new Map();
  for (let i = 0; i < layout.boxes.length; i++) {
    const { depth } = layout.boxes[i];
    shown.set(depth, (shown.get(depth) ?? 0) + layout.width[i]);
  }
  for (let i = 0; i < layout.strips.length; i += 4) {
    const row = layout.strips[i];
    shown.set(row, (shown.get(row) ?? 0) + layout.strips[i + 2]);
  }
  assert.ok(Math.abs(shown.get(0) - 900) < 1e-6);
  assert.ok(Math.abs(shown.get(1) - 900) < 1e-6);
  assert.ok(Math.abs(shown.get(2) - 900) < 1e-6);
  // Zoomed, the box fills the width.
  const box = layout.boxes[layout.rowStart[3] + 2];
  const zoomed = layOut(merge, view.a, spanOf(merge, view.a, box), 900, 100);
  const place = zoomed.boxes.indexOf(box);
  assert.ok(Math.abs(zoomed.x[place]) < 1e-6 && Math.abs(zoomed.width[place] - 900) < 1e-6);
  assert.equal(boxAt(merge, pathOf(box)), box);
  assert.equal(zoomed.boxes[zoomed.at(3, 450)], box);
  assert.equal(zoomed.at(99, 1), -1);
});

test("a change is told only if it is more than chance", () => {
  const of = (/** @type {number} */ samples, /** @type {number} */ all) =>
    ({ weight: samples, samples, all, allSamples: all });
  assert.equal(changeOf(of(100, 1000), of(101, 1000)), 0);
  assert.equal(changeOf(of(0, 1000), of(0, 1000)), 0);
  assert.equal(changeOf(of(3, 1000), of(0, 1000)), 0);
  assert.equal(changeOf(of(200, 1000), of(100, 1000)), 1);
  assert.equal(changeOf(of(100, 1000), of(400, 1000)), -2);
  assert.equal(changeOf(of(0, 1000), of(400, 1000)), -6);
  assert.equal(changeOf(of(400, 1000), of(0, 1000)), 6);
  assert.equal(changeOf(of(5, 10), of(0, 0)), 0);
});

test("the greatest are those of a sort", () => {
  const next = random(9);
  for (let round = 0; round < 50; round++) {
    const values = Float64Array.from({ length: 40 }, () => Math.floor(next() * 9));
    const wanted = [...values.keys()].filter((i) => values[i] > 0 && i % 3 > 0)
      .sort((a, b) => values[b] - values[a] || a - b).slice(0, 7);
    assert.deepEqual(greatest(values, 7, (i) => i % 3 > 0), wanted);
  }
});

test("columns share the steps without gap", () => {
  for (const [from, to, width, samples] of [[0, 512, 100, 1e6], [0, 100, 1200, 1e6], [0, 4096, 1200, 900], [0, 1, 1200, 1], [0, 7, 3, 1e6], [100, 190, 40, Infinity]]) {
    const columns = new Columns(from, to, width, samples);
    assert.ok(columns.count >= 1 && columns.count <= Math.max(1, Math.min(to - from, width)));
    for (let step = from; step < to; step++) {
      const of = columns.of(step);
      assert.ok(step >= columns.first(of) && step < columns.first(of + 1), `${step} of ${to}`);
    }
    assert.deepEqual([columns.first(0), columns.first(columns.count)], [from, to]);
  }
});
