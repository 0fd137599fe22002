// Makes a page from a model given as plain objects: the second witness of what a page holds, written
// without a look at the Rust encoder. Tests open what it makes, or read its columns.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";

/** Modules in the order in which they are joined to one script. */
export const MODULES = [
  "format", "names", "colours", "decode", "extents", "path", "waits", "model", "group", "filter", "merge", "layout", "state",
  "series", "moments", "classes", "finder", "view", "numbers", "dom", "address", "tip", "keys", "flame", "brush", "timeline", "chart", "table", "panel", "recording", "bar", "app", "start",
];

const WEB = new URL("../../report/src/picture/page/web/", import.meta.url);

/**
 * A frame of a stack.
 * @typedef {object} MadeFrame
 * @property {string} name
 * @property {string} [module]
 * @property {number} [kind]
 */

/**
 * Samples of one stack in one thread, CPU and step.
 * @typedef {object} MadeSample
 * @property {number} thread Index of the thread.
 * @property {number} step
 * @property {number} [cpu] Unknown if absent.
 * @property {MadeFrame[]} stack Outermost caller first.
 * @property {number} [count]
 * @property {number} [activity] What the thread did, if the event says that of all.
 * @property {number} [more] Steps after the first one.
 * @property {number} [head] Part of the first step in 256ths, less one.
 * @property {number} [weight] Period in ns or events, if not all are equal.
 */

/**
 * @typedef {object} MadeEvent
 * @property {string} name
 * @property {number | null} quantum
 * @property {number} [unit_weight]
 * @property {MadeSample[]} samples
 * @property {"ns" | "samples" | "events"} [unit]
 * @property {boolean} [counts_time]
 * @property {string} [axis]
 * @property {string} [label]
 * @property {{thread: number, step: number, more?: number, head?: number, rest: number}[]} [ran]
 *   When threads ran, if samples have activities; `rest`: 256ths of a step, of the last one.
 */

/**
 * @typedef {object} Made
 * @property {{command: string, pid: number, tid: number, side?: number}[]} threads
 * @property {MadeEvent[]} events
 * @property {{thread: number, activity: number, gap: number, length: number}[]} [path] In 256ths
 *   of a step.
 * @property {{thread: number, from: number, woken: number, to: number, what: string, wokenBy: string, wakerStack: string}[]} [waits]
 *   In 256ths of a step, by threads and in order of time.
 * @property {number} [step]
 * @property {number} [steps]
 * @property {Record<string, unknown>} [meta] Overrides.
 * @property {{frame: MadeFrame, event: number, rows: object[]}[]} [code]
 * @property {{event: string, word: string, lines: string[],
 *   changes: {frame: MadeFrame, change: number, text: string}[]}[]} [verdicts]
 */

/**
 * Returns the bytes of unsigned LEB128 numbers.
 * @param {Iterable<number>} numbers
 * @returns {Uint8Array}
 */
export function leb128(numbers) {
  let bytes = new Uint8Array(1024);
  let size = 0;
  for (let value of numbers) {
    if (size + 10 > bytes.length) {
      const larger = new Uint8Array(bytes.length * 2);
      larger.set(bytes);
      bytes = larger;
    }
    while (value >= 128) {
      bytes[size++] = (value % 128) + 128;
      value = Math.floor(value / 128);
    }
    bytes[size++] = value;
  }
  return bytes.slice(0, size);
}

/**
 * @param {MadeFrame} frame
 * @returns {string}
 */
function keyOfFrame(frame) {
  return `${frame.module ?? ""}\u0001${frame.name}\u0001${frame.kind ?? 0}`;
}

/**
 * Returns the columns of a model, by name.
 * @param {Made} made
 * @returns {Map<string, Uint8Array>}
 */
export function columnsOf(made) {
  const { threads, events } = made;
  const utf8 = new TextEncoder();
  /** @type {Map<string, MadeFrame>} */
  const frames = new Map();
  for (const event of events) {
    for (const { stack } of event.samples) {
      for (const frame of stack) frames.set(keyOfFrame(frame), frame);
    }
  }
  for (const one of made.code ?? []) frames.set(keyOfFrame(one.frame), one.frame);
  const sorted = [...frames].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  const number = new Map(sorted.map(([key], i) => [key, i]));
  const modules = [...new Set(sorted.map(([, frame]) => frame.module ?? ""))].filter(Boolean);

  /** @typedef {{children: Map<number, Node>, number: number}} Node */
  /** @type {Node} */
  const root = { children: new Map(), number: -1 };
  /** @type {Map<MadeSample, Node>} */
  const ends = new Map();
  for (const event of events) {
    for (const sample of event.samples) {
      let node = root;
      for (const frame of sample.stack) {
        const of = number.get(keyOfFrame(frame)) ?? 0;
        let child = node.children.get(of);
        if (child === undefined) node.children.set(of, (child = { children: new Map(), number: -1 }));
        node = child;
      }
      ends.set(sample, node);
    }
  }
  /** @type {number[]} */
  const pops = [];
  /** @type {number[]} */
  const sibs = [];
  /** @type {number[][]} Frames from the top to each node. */
  const paths = [];
  let nodes = 0;
  let depth = 0;
  /** @type {{node: Node, frame: number, depth: number, path: number[] | null, previous: number}[]} */
  const open = [];
  /** @param {Node} node @param {number} at @param {number[] | null} path */
  function openChildren(node, at, path) {
    const children = [...node.children].sort((a, b) => b[0] - a[0]);
    children.forEach(([frame, child], i) => {
      const previous = children[i + 1]?.[0] ?? 0;
      open.push({ node: child, frame, depth: at, path, previous });
    });
  }
  const keepsPaths = (made.meta?.["deep"] ?? false) !== true;
  openChildren(root, 1, []);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    next.node.number = nodes++;
    pops.push(nodes === 1 ? 0 : depth + 1 - next.depth);
    sibs.push(next.frame - next.previous);
    depth = next.depth;
    const path = keepsPaths ? [...(next.path ?? []), next.frame] : null;
    if (path !== null) paths.push(path);
    openChildren(next.node, next.depth + 1, path);
  }

  const commands = [...new Set(threads.map((thread) => thread.command))].sort();
  const order = threads.map((_, i) => i).sort((a, b) => {
    const one = commands.indexOf(threads[a].command) - commands.indexOf(threads[b].command);
    return one || threads[a].pid - threads[b].pid || a - b;
  });
  /** @param {MadeSample} one */
  const cellOf = (one) => [one.step, (one.cpu ?? -1) + 1, one.activity ?? 0, one.more ?? 0, one.head ?? 0];
  const sides = Math.max(0, ...threads.map((thread) => thread.side ?? 0)) + 1;
  const steps = made.steps ?? 1 + Math.max(0, ...events.flatMap((event) => event.samples.map((one) => one.step)));
  const step = made.step ?? 1 << 20;

  /** @type {Map<string, Uint8Array>} */
  const columns = new Map();
  /** @type {object[]} */
  const eventsMeta = [];
  let cpus = 0;
  events.forEach((event, e) => {
    const weighted = event.quantum === null;
    const unit = event.unit_weight ?? 1;
    /** @type {Map<string, number>} */
    const cells = new Map();
    /** @type {number[]} */
    const cellColumn = [];
    /** @type {number[][]} */
    const extents = [];
    for (const thread of order) {
      const own = event.samples.filter((one) => one.thread === thread);
      const keys = [...new Map(own.map((one) => [cellOf(one).join(), cellOf(one)])).values()]
        .sort((a, b) => a.reduce((order, value, i) => order || value - (b[i] ?? 0), 0));
      cellColumn.push(keys.length);
      let last = 0;
      for (const key of keys) {
        cells.set(`${thread} ${key}`, cells.size);
        extents.push(key.slice(2));
        cellColumn.push(key[0] - last);
        last = key[0];
      }
      for (const key of keys) {
        cellColumn.push(key[1]);
        cpus = Math.max(cpus, key[1]);
      }
    }
    const hasExtents = event.samples.some((one) => one.activity !== undefined);
    if (hasExtents) {
      const heads = extents.filter((one) => one[1] > 0).map((one) => one[2]);
      columns.set(`extents${e}`, leb128([...extents.map((one) => one[0]), ...extents.map((one) => one[1]), ...heads]));
      columns.set(`ran${e}`, leb128(order.flatMap((thread) => {
        const own = (event.ran ?? []).filter((one) => one.thread === thread);
        return [own.length, ...own.map((one, i) => one.step - (own[i - 1]?.step ?? 0)),
          ...own.map((one) => one.more ?? 0),
          ...own.filter((one) => (one.more ?? 0) > 0).map((one) => one.head ?? 0), ...own.map((one) => one.rest)];
      })));
    }
    /** @type {Map<number, {count: number, weight: number}>[]} Per node: by cell. */
    const entries = Array.from({ length: nodes }, () => new Map());
    const sums = Array.from({ length: sides }, () => new Array(frames.size * 4).fill(0));
    const samples = new Array(sides).fill(0);
    const period = new Array(sides).fill(0);
    for (const sample of event.samples) {
      const node = ends.get(sample)?.number ?? 0;
      const cell = cells.get(`${sample.thread} ${cellOf(sample)}`) ?? 0;
      const count = sample.count ?? 1;
      const weight = weighted ? sample.weight ?? 0 : count * (event.quantum ?? 1);
      const entry = entries[node].get(cell) ?? { count: 0, weight: 0 };
      entries[node].set(cell, { count: entry.count + count, weight: entry.weight + weight });
      const side = threads[sample.thread].side ?? 0;
      samples[side] += count;
      period[side] += weight;
      const path = sample.stack.map((frame) => number.get(keyOfFrame(frame)) ?? 0);
      const last = path[path.length - 1];
      sums[side][last * 4] += count;
      sums[side][last * 4 + 1] += weight;
      for (const frame of new Set(path)) {
        sums[side][frame * 4 + 2] += count;
        sums[side][frame * 4 + 3] += weight;
      }
    }
    const gaps = [];
    const counts = [];
    const weights = [];
    for (const ofNode of entries) {
      let last = -1;
      for (const [cell, entry] of [...ofNode].sort((a, b) => a[0] - b[0])) {
        gaps.push(cell - last - 1);
        last = cell;
        counts.push(entry.count - 1);
        weights.push(Math.round(entry.weight / unit));
      }
    }
    columns.set(`cells${e}`, leb128(cellColumn));
    columns.set(`lens${e}`, leb128(entries.map((ofNode) => ofNode.size)));
    columns.set(`gaps${e}`, leb128(gaps));
    columns.set(`counts${e}`, leb128(counts));
    if (weighted) columns.set(`weights${e}`, leb128(weights));
    columns.set(`sums${e}`, leb128(sums.flat()));
    eventsMeta.push({
      name: event.name, counts_time: event.counts_time ?? true, unit: event.unit ?? "ns", axis: event.axis,
      label: event.label, ...(hasExtents ? { has_extents: true } : {}),
      samples, period, lost_samples: 0, cells: cells.size, entries: gaps.length,
      quantum: event.quantum, unit_weight: unit,
    });
  });
  /** @type {number[]} */
  const runs = [];
  sorted.forEach(([, frame], i) => {
    const module = modules.indexOf(frame.module ?? "") + 1;
    const kind = frame.kind ?? 0;
    const last = runs.length - 3;
    if (i > 0 && runs[last] === module && runs[last + 1] === kind) runs[last + 2] += 1;
    else runs.push(module, kind, 1);
  });
  const meta = {
    format: 1, title: "./app --run", step, steps, side_steps: new Array(sides).fill(steps), cpus,
    sides: Array.from({ length: sides }, (_, i) => ({
      name: i === 0 ? "app.data" : "base.data", command: "./app --run", host: "vm", os: "Linux 6.18",
      arch: "x86_64", cpus: 2, date: "2026-11-26 23:28", duration: steps * step, begin: "1234.567890123",
      files: [{
        path: "/tmp/app.data", bytes: 123456, records: { SAMPLE: 1000, MMAP2: 20, COMM: 3 }, lost_events: 0,
        lost_samples: 0, complete: true,
      }],
    })),
    modules: modules.map((name) => ({ name, path: `/usr/bin/${name}` })),
    nodes, names: sorted.length, commands: commands.length, threads: threads.length,
    events: eventsMeta, warnings: [], broken: [], remedies: [], cut: null, views: [], tool: "rep 0.0.0",
    verdicts: (made.verdicts ?? []).map((verdict) => ({
      ...verdict,
      changes: verdict.changes.map((one) => ({ ...one, frame: number.get(keyOfFrame(one.frame)) })),
    })),
    ...made.meta,
  };
  columns.set("meta", utf8.encode(JSON.stringify(meta)));
  columns.set("names", utf8.encode(sorted.map(([, frame]) => frame.name).join("\0")));
  columns.set("commands", utf8.encode(commands.join("\0")));
  columns.set("frames", leb128(runs));
  columns.set("threads", leb128(order.flatMap((i) => [
    commands.indexOf(threads[i].command), threads[i].side ?? 0, threads[i].pid + 1, threads[i].tid + 1,
  ])));
  columns.set("pops", leb128(pops));
  columns.set("sibs", leb128(sibs));
  if (made.path !== undefined) {
    columns.set("path", leb128([made.path.length, ...made.path.flatMap((one) =>
      [order.indexOf(one.thread), one.activity, one.gap, one.length])]));
  }
  if (made.waits !== undefined) {
    const texts = [...new Set(made.waits.flatMap((one) => [one.what, one.wokenBy, one.wakerStack]))];
    const numbers = [made.waits.length, texts.length];
    let [thread, from] = [0, 0];
    for (const one of made.waits.map((wait) => ({ ...wait, thread: order.indexOf(wait.thread) }))) {
      if (one.thread !== thread) from = 0;
      numbers.push(one.thread - thread, one.from - from, one.woken - one.from, one.to - one.woken,
        texts.indexOf(one.what), texts.indexOf(one.wokenBy), texts.indexOf(one.wakerStack));
      [thread, from] = [one.thread, one.from];
    }
    columns.set("waits", leb128(numbers));
    columns.set("waited", utf8.encode(texts.join("\0")));
  }
  if (made.code !== undefined) {
    columns.set("code", utf8.encode(JSON.stringify(made.code.map((one) =>
      ({ ...one, frame: number.get(keyOfFrame(one.frame)) })))));
  }
  return columns;
}

/**
 * Returns a module's source as it stands in the page: without comments, `import`, `export`, and
 * spaces at the beginning of lines.
 * @param {string} name
 * @returns {string}
 */
export function joined(name) {
  const out = [];
  let inComment = false;
  for (const line of readFileSync(new URL(name + ".js", WEB), "utf8").split("\n")) {
    const text = line.trim();
    if (inComment || text.startsWith("/**")) {
      inComment = !text.endsWith("*/");
      continue;
    }
    if (text === "" || text.startsWith("//") || line.startsWith("import ")) continue;
    out.push(text.replace(/^export /, ""));
  }
  return out.join("\n") + "\n";
}

/**
 * Returns the page of some columns.
 * @param {Map<string, Uint8Array>} columns
 * @param {string} [title]
 * @returns {string}
 */
export function pageOf(columns, title = "A page") {
  const style = readFileSync(new URL("page.css", WEB), "utf8");
  const script = `"use strict"; {\n${MODULES.map(joined).join("")}}`;
  const hash = (/** @type {string} */ text) =>
    `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  /** @type {Record<string, string>} */
  const values = {
    policy: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; ` +
      "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    title: title.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`),
    style,
    script,
    data: [...columns].map(([name, bytes]) =>
      `<script type="application/octet-stream" id="d-${name}">` +
      `${deflateRawSync(bytes, { level: 6 }).toString("base64")}</script>`).join("\n"),
  };
  const template = readFileSync(new URL("page.html", WEB), "utf8");
  return template.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name] ?? "");
}

/**
 * Returns the page of a model.
 * @param {Made} made
 */
export function pageOfModel(made) {
  return pageOf(columnsOf(made));
}
