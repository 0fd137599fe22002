// Models that the tests make pages of.

import { leb128 } from "./made.mjs";

/** @typedef {import("./made.mjs").Made} Made */
/** @typedef {import("./made.mjs").MadeFrame} MadeFrame */
/** @typedef {import("./made.mjs").MadeSample} MadeSample */

/**
 * Returns a generator of numbers from 0 to 1 that is the same everywhere.
 * @param {number} seed
 */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const KERNEL = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read", "vfs_read", "copy_to_user",
  "exc_page_fault", "handle_mm_fault", "clear_page_erms"];

/**
 * Returns a stack as a program might have it.
 * @param {() => number} next
 * @param {string} program
 * @returns {MadeFrame[]}
 */
function stackOf(next, program) {
  const pick = (/** @type {string[]} */ list) => list[Math.floor(next() * list.length)];
  /** @type {MadeFrame[]} */
  const stack = [{ name: "_start", module: program }];
  if (next() < 0.9) {
    stack.push({ name: "__libc_start_call_main", module: "libc.so.6" }, { name: "main", module: program });
  }
  const parts = ["parse", "fold", "emit", "lookup", "walk", "hash"];
  const depth = 1 + Math.floor(next() ** 2 * 9);
  for (let i = 0; i < depth; i++) {
    const part = pick(parts);
    const form = Math.floor(next() ** 3 * 5);
    const name = [
      `${program}::${part}::run`, `${part}_${form}`, `<${program}::${part}::Visitor<T> as core::iter::Iterator>::next`,
      `std::vector<std::pair<int, ${part}>>::push_back(std::pair<int, ${part}> const&)`,
      `core::ptr::drop_in_place<alloc::vec::Vec<${part}>>`,
    ][form];
    stack.push({ name, module: program });
  }
  const end = next();
  if (end < 0.15) stack.push({ name: "malloc", module: "libc.so.6" });
  else if (end < 0.25) stack.push({ name: `${program} (no name)`, module: program, kind: 2 });
  else if (end < 0.45) {
    const from = next() < 0.5 ? 0 : 5;
    const length = 1 + Math.floor(next() * (from === 0 ? 5 : 3));
    for (const name of KERNEL.slice(from, from + length)) {
      stack.push({ name, module: "[kernel.kallsyms]", kind: 1 });
    }
  }
  return stack;
}

/**
 * Returns a model like a recording of a build: four programs, two CPUs, a spike, idle time.
 * @param {number} samples
 * @param {{sides?: number, seed?: number}} [options]
 * @returns {Made}
 */
export function program(samples, options = {}) {
  const next = random(options.seed ?? 1);
  const sides = options.sides ?? 1;
  const names = ["rustc", "cc1plus", "ld", "make"];
  /** @type {Made["threads"]} */
  const threads = [];
  for (let side = 0; side < sides; side++) {
    names.forEach((command, i) => {
      for (let t = 0; t <= i % 3; t++) {
        threads.push({ command, pid: 100 * (i + 1) + side, tid: 100 * (i + 1) + t + side, side });
      }
    });
    threads.push({ command: "swapper", pid: 0, tid: 0, side });
  }
  const steps = 512;
  /** @type {MadeSample[]} */
  const all = [];
  /** @type {MadeSample[]} */
  const waits = [];
  for (let i = 0; i < samples; i++) {
    const step = Math.floor((i / samples) * steps);
    const thread = Math.floor(next() * threads.length);
    const { command } = threads[thread];
    const cpu = i % 2;
    if (command === "swapper") {
      const stack = [{ name: "do_idle", module: "[kernel.kallsyms]", kind: 1 },
        { name: "intel_idle", module: "[kernel.kallsyms]", kind: 8 }];
      if (next() < 0.3) all.push({ thread, step, cpu, stack });
      continue;
    }
    const isSpike = step > 300 && step < 360 && command === "rustc" && threads[thread].side !== 1;
    const stack = isSpike
      ? [{ name: "_start", module: "rustc" }, { name: "main", module: "rustc" },
        { name: "rustc::spike::hot", module: "rustc" }, { name: "memmove", module: "libc.so.6" }]
      : stackOf(next, command);
    all.push({ thread, step, cpu, stack });
    if (next() < 0.1) {
      waits.push({
        thread, step, cpu, weight: Math.round(next() * 8) * 250_000 + 250_000,
        stack: [...stack, { name: "schedule", module: "[kernel.kallsyms]", kind: 1 }],
      });
    }
  }
  return {
    threads, steps, step: 1 << 24,
    events: [
      { name: "cpu-clock", quantum: 750_000, samples: all },
      { name: "off-cpu", quantum: null, unit_weight: 250_000, samples: waits, axis: "threads waiting" },
    ],
    code: [{
      frame: { name: "rustc::spike::hot", module: "rustc" }, event: 0,
      rows: Array.from({ length: 40 }, (_, i) => ({
        address: (0x401000 + i * 4).toString(16), text: i % 9 === 8 ? "jne 401008" : "mov (%rdi,%rax,8),%rcx",
        samples: i === 12 ? 900 : i % 5 === 0 ? 40 : 0,
        ...(i % 9 === 8 ? { jump: 2 } : {}), ...(i % 6 === 0 ? { source: `hot.rs:${10 + i}` } : {}),
      })),
    }],
    meta: {
      title: "cargo build --release --workspace",
      warnings: [
        { code: "broken-stacks", message: "76 % of the stacks stop before the start of their program: rustc, cc1plus and others keep no frame pointers. Record with --call-graph dwarf" },
        { code: "no-symbols", message: "11.2 % of the samples have no function name: mostly cc1plus (stripped)" },
      ],
      broken: [
        { program: "rustc", stacks: 12000, broken: 9000, cut: 20, remedy: "--call-graph dwarf, or build with -C force-frame-pointers" },
        { program: "cc1plus", stacks: 8000, broken: 5000, cut: 0, remedy: "--call-graph dwarf" },
      ],
      remedies: ["Install debug symbols of libc.so.6: libc6-dbg"],
      views: [
        { what: "The same as text", line: "rep -g app.data" },
        { what: "For other programs", line: "rep --json --children app.data" },
      ],
      cut: { least: 3, samples: 120 },
    },
  };
}

/** Names that try to break a page. */
export const HOSTILE = [
  "<script>document.title='pwned'</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
  "\"><svg onload=alert(1)>", "{{script}}", "{{data}}", "javascript:alert(1)", "__proto__", "constructor",
  "toString", "hasOwnProperty", "\u0001\u0002\u001b[31mred", "\u202eelgnam\u202c", "a\u200bb\u200cc\ufeff", "\u2028\u2029",
  "<".repeat(4000), "(".repeat(4000), "a::".repeat(1300), "名前".repeat(500), "👩‍👩‍👧‍👦".repeat(100), " ", "\t", "\n\n", "%s%n%x",
  "'; DROP TABLE samples; --", "<!--", "-->", "]]>", "&lt;b&gt;&amp;", "\\u003cscript\\u003e", "<a href=http://example.com/>", "&#x3c;",
  "operator<", "operator<<=", "<T as U", "<<<>>>", "\u007f\u0085\u009b", "‮", "𝕏".repeat(300),
];

/** @returns {Made} */
export function hostile() {
  const next = random(7);
  const threads = HOSTILE.slice(0, 20).map((command, i) => ({ command, pid: i, tid: i }));
  /** @type {MadeSample[]} */
  const samples = [];
  HOSTILE.forEach((name, i) => {
    for (let n = 0; n < 6; n++) {
      const other = HOSTILE[Math.floor(next() * HOSTILE.length)];
      samples.push({
        thread: (i + n) % threads.length, step: (i * 5 + n) % 200, count: 1 + (i % 7),
        stack: [{ name, module: HOSTILE[(i * 3) % HOSTILE.length], kind: i % 10 }, { name: other, module: name }],
      });
    }
  });
  const text = HOSTILE[0];
  return {
    threads, steps: 200,
    events: [{ name: text, quantum: 1000, samples }, { name: HOSTILE[1], quantum: 1, unit: "events", counts_time: false, samples: samples.slice(0, 9) }],
    code: [{ frame: { name: HOSTILE[2], module: HOSTILE[6], kind: 2 }, event: 0, rows: HOSTILE.map((name) => (
      { address: name, text: name, samples: 1, source: name, function: name, jump: 1 })) }],
    meta: {
      title: HOSTILE[1], tool: text,
      sides: [{
        name: text, command: HOSTILE[2], host: HOSTILE[3], os: HOSTILE[12], arch: text, cpus: 2, date: text,
        duration: 200 << 20, begin: text,
        files: [{ path: HOSTILE[15], bytes: 1, records: JSON.parse('{"__proto__": 1, "<b>": 2}'), lost_events: 0, lost_samples: 0, complete: false }],
      }],
      warnings: HOSTILE.map((message) => ({ code: message, message })),
      broken: HOSTILE.slice(0, 9).map((one) => ({ program: one, stacks: 4, broken: 2, cut: 1, remedy: one })),
      remedies: HOSTILE.slice(0, 9), views: HOSTILE.slice(0, 9).map((one) => ({ what: one, line: one })),
    },
  };
}

/**
 * Returns one stack of a depth, twice.
 * @param {number} depth
 * @returns {Made}
 */
export function deep(depth) {
  const stack = Array.from({ length: depth }, (_, i) => ({ name: `f${i % 50}`, module: "deep" }));
  return {
    threads: [{ command: "deep", pid: 1, tid: 1 }], steps: 4,
    events: [{ name: "cpu-clock", quantum: 1, samples: [{ thread: 0, step: 0, stack }, { thread: 0, step: 2, stack, count: 3 }] }],
    meta: { deep: true },
  };
}

/**
 * Returns the columns of a recording as large as 383 MB of one: made as columns, for objects would
 * be too many.
 * @returns {Map<string, Uint8Array>}
 */
export function large() {
  const next = random(42);
  const functions = 29_000;
  const modules = 200;
  const nodes = 262_000;
  const threads = 4_142;
  const commands = 120;
  const steps = 4_096;
  const utf8 = new TextEncoder();
  const names = Array.from({ length: functions }, (_, i) => {
    const base = Math.imul(i + 1, 2654435761) >>> 0;
    return i % 3 === 0 ? `module${base % 97}::part${base % 31}::function_${i}<alloc::vec::Vec<T>>::call`
      : `function_${base.toString(36)}_${i}`;
  });
  const perModule = functions / modules;
  const runs = [];
  for (let m = 0; m < modules; m++) runs.push(m + 1, m < 12 ? 1 : m % 9 === 8 ? 2 : 0, perModule);
  // The tree: depths wander, siblings have ascending frames.
  const pops = [];
  const sibs = [];
  const depths = new Uint16Array(nodes);
  /** @type {number[]} Frame of the open node of each depth. */
  const open = [0];
  let depth = 0;
  for (let node = 0; node < nodes; node++) {
    let up = node === 0 ? 0 : Math.floor(next() * 2.2);
    if (depth > 60) up = Math.max(up, 3 + Math.floor(next() * 30));
    if (node > 0 && next() < 0.002) up = depth;
    up = Math.min(up, depth);
    let at = depth + 1 - up;
    let sibling = up > 0 ? open[at] : -1;
    while (sibling >= functions - 2 && at > 1) {
      up += 1;
      at -= 1;
      sibling = open[at];
    }
    const frame = sibling < 0 ? Math.floor(next() * functions * 0.9)
      : Math.min(functions - 1, sibling + 1 + Math.floor(next() * (functions - sibling) * 0.08));
    pops.push(up);
    sibs.push(sibling < 0 ? frame : frame - sibling);
    open[at] = frame;
    depth = at;
    depths[node] = at;
  }
  // Threads: few long ones, many short; cells at steps of their lives.
  const threadColumn = [];
  const cellColumn = [];
  let cells = 0;
  /** @type {number[]} */
  const cellFirst = [];
  for (let t = 0; t < threads; t++) {
    threadColumn.push(Math.floor((t * commands) / threads), 0, 1000 + (t >> 2) + 1, 2000 + t + 1);
    const begin = Math.floor(next() * steps * 0.9);
    const length = Math.min(steps - begin, 1 + Math.floor(next() ** 6 * 220 + 3));
    cellFirst.push(cells);
    cellColumn.push(length, begin);
    for (let i = 1; i < length; i++) cellColumn.push(1);
    for (let i = 0; i < length; i++) cellColumn.push(1 + ((i >> 3) + t) % 2);
    cells += length;
  }
  cellFirst.push(cells);
  const lens = new Uint32Array(nodes);
  const gaps = [];
  const counts = [];
  /** First thread of the open node of each depth: what is below stays in the same program. */
  const homes = [0];
  let samples = 0;
  for (let node = 0; node < nodes; node++) {
    const wanted = next() < 0.25 ? 0 : Math.floor(next() ** 4 * 38) + (next() < 0.002 ? 300 : 0);
    const at = depths[node];
    const home = at <= 2 ? Math.floor(next() * threads * 0.97) : homes[at - 1];
    homes[at] = home;
    const span = cellFirst[Math.min(threads, home + 40)] - cellFirst[home];
    let last = -1;
    let cell = cellFirst[home];
    for (let i = 0; i < wanted; i++) {
      cell += 1 + Math.floor(next() * (span / wanted) * 1.8);
      if (cell >= cells) break;
      gaps.push(cell - last - 1);
      last = cell;
      const count = 1 + Math.floor(next() ** 5 * 7);
      counts.push(count - 1);
      samples += count;
      lens[node] += 1;
    }
  }
  const sums = new Float64Array(functions * 4);
  // Exact sums, with a stack of open frames.
  /** @type {number[]} */
  const frames = [];
  {
    /** @type {number[]} */
    const path = [];
    const depthOf = new Uint32Array(functions);
    let entry = 0;
    let last = 0;
    for (let node = 0; node < nodes; node++) {
      while (path.length >= depths[node]) depthOf[path.pop() ?? 0] -= 1;
      const frame = sibs[node] + (pops[node] > 0 ? open2(last, node) : 0);
      frames.push(frame);
      path.push(frame);
      depthOf[frame] += 1;
      let self = 0;
      for (let i = 0; i < lens[node]; i++) self += counts[entry++] + 1;
      sums[frame * 4] += self;
      for (const one of new Set(path)) sums[one * 4 + 2] += self;
      last = node;
    }
  }
  /** @param {number} last @param {number} node */
  function open2(last, node) {
    let at = last;
    while (depths[at] !== depths[node]) at -= 1;
    return frames[at];
  }
  for (let f = 0; f < functions; f++) {
    sums[f * 4 + 1] = sums[f * 4] * 40_000;
    sums[f * 4 + 3] = sums[f * 4 + 2] * 40_000;
  }
  const meta = {
    format: 1, title: "cargo build --release --workspace -q", step: 1 << 24, steps, cpus: 2,
    sides: [{ name: "build.data", command: "cargo build", host: "vm", os: "Linux 6.18.44", arch: "x86_64", cpus: 2,
      date: "2026-11-26 23:28", duration: steps * (1 << 24), begin: "1.0", files: [] }],
    modules: Array.from({ length: modules }, (_, m) => ({ name: m < 12 ? `[kernel ${m}]` : `lib${m}.so.${m % 7}`, path: "" })),
    nodes, names: functions, commands, threads,
    events: [{ name: "cpu-clock", counts_time: true, unit: "ns", samples: [samples], period: [samples * 40_000],
      lost_samples: 0, cells, entries: gaps.length, quantum: 40_000, unit_weight: 1 }],
    warnings: [], broken: [], remedies: [], cut: null, views: [], tool: "rep 0.0.0",
  };
  return new Map([
    ["meta", utf8.encode(JSON.stringify(meta))], ["names", utf8.encode(names.join("\0"))],
    ["commands", utf8.encode(Array.from({ length: commands }, (_, i) => `command${i}`).join("\0"))],
    ["frames", leb128(runs)], ["threads", leb128(threadColumn)], ["pops", leb128(pops)], ["sibs", leb128(sibs)],
    ["cells0", leb128(cellColumn)], ["lens0", leb128(lens)], ["gaps0", leb128(gaps)], ["counts0", leb128(counts)],
    ["sums0", leb128(sums)],
  ]);
}

/**
 * Returns a model of three threads that run, wait and are preempted, and the times as they were.
 * @param {number} seed
 * @returns {{made: Made, times: {thread: number, activity: number, from: number, to: number}[],
 *   named: NonNullable<Made["waits"]>}}
 */
export function waits(seed) {
  const next = random(seed);
  const [step, steps] = [1 << 16, 256];
  const threads = [1, 2, 3].map((tid) => ({ command: "app", pid: 1, tid }));
  /** @type {{thread: number, activity: number, from: number, to: number}[]} */
  const times = [];
  for (let thread = 0; thread < threads.length; thread++) {
    for (let at = 0, turn = 0; at < step * steps; turn++) {
      // From a 20th of a step to eight steps.
      const length = Math.round(step * 0.05 * 160 ** next());
      const activity = turn % 2 === 0 ? 0 : next() < 0.7 ? 1 : 2;
      times.push({ thread, activity, from: at, to: Math.min(at + length, step * steps) });
      at += length;
    }
  }
  /** @param {{from: number, to: number}} time */
  const reach = ({ from, to }) => {
    const first = Math.floor(from / step);
    const more = Math.floor((to - 1) / step) - first;
    const head = more > 0 ? Math.max(Math.floor((((first + 1) * step - from) * 256) / step) - 1, 0) : 0;
    const whole = more > 0 ? head + 1 + (more - 1) * 256 : 0;
    return { step: first, more, head, rest: Math.max(Math.floor(((to - from) * 256) / step) - whole, 0) };
  };
  const main = { name: "main", module: "app" };
  /** @type {MadeSample[]} */
  const samples = times.filter((one) => one.activity > 0).map((one) => {
    const { step: at, more, head } = reach(one);
    const stack = [main, { name: one.activity === 1 ? "schedule" : "preempt_schedule", kind: 1 }];
    return { thread: one.thread, step: at, more, head, cpu: 0, activity: one.activity, weight: one.to - one.from, stack };
  });
  for (let i = 0; i < 60; i++) {
    const at = Math.floor(next() * steps);
    samples.push({ thread: i % 3, step: at, cpu: 0, activity: 0, weight: step, stack: [main, { name: "work", module: "app" }] });
  }
  const ran = times.filter((one) => one.activity === 0).map((one) => ({ thread: one.thread, ...reach(one) }));
  const parts = (/** @type {number} */ time) => Math.floor((time * 256) / step);
  const named = times.filter((one) => one.activity === 1).map(({ thread, from, to }) => ({
    thread, from: parts(from), woken: parts(to - (to - from) / 4), to: parts(to),
    what: `futex (lock${thread})`, wokenBy: thread === 0 ? "9:app unlock" : "",
    wakerStack: thread === 0 ? "futex_wake\nunlock\nrun" : "",
  }));
  return {
    named,
    made: {
      threads, step, steps,
      events: [{ name: "wall", label: "wall", quantum: null, unit_weight: step / 64, samples, ran, axis: "threads" }],
    },
    times,
  };
}
