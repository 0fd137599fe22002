// The page in Chromium, from file://: no message, no request, keys, brush, compare, diff, events,
// hostile and very deep recordings, accessibility. Skipped with a message where there is no Chromium.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { CHROMIUM, launch, open, settle } from "./chromium.mjs";
import { columnsOf, pageOf, pageOfModel } from "./made.mjs";
import { deep, hostile, program, waits } from "./models.mjs";

/** @typedef {import("playwright-core").Page} Page */

const skip = CHROMIUM === "" ? "no Chromium: set CHROMIUM to its path" : false;
const folder = mkdtempSync(join(tmpdir(), "recrep-page-"));
const MODEL = program(4000);
/** A path through three threads. */
const PATH = Array.from({ length: 12 }, (_, i) => ({ thread: i % 3, activity: i % 2, gap: 0, length: 256 * (8 + ((i * 7) % 20)) }));
/** @type {import("playwright-core").Browser} */
let browser;

/** @param {string} name */
const path = (name) => join(folder, name + ".html");

before(async () => {
  if (skip) return;
  writeFileSync(path("program"), pageOfModel(MODEL));
  const two = program(4000, { sides: 2 });
  const hot = { name: "rustc::spike::hot", module: "rustc" };
  const verdict = {
    event: two.events[0].name, word: "CHANGED", lines: ["1 of 9 functions slower. Total +4.2 % [+1.0, +7.5]."],
    changes: [{ frame: hot, change: 6, text: "new" }],
  };
  writeFileSync(path("diff"), pageOfModel({ ...two, verdicts: [verdict] }));
  writeFileSync(path("waits"), pageOfModel(waits(7).made));
  writeFileSync(path("named"), pageOfModel({ ...waits(7).made, waits: waits(7).named }));
  writeFileSync(path("path"), pageOfModel({ ...waits(7).made, path: PATH }));
  writeFileSync(path("hostile"), pageOfModel(hostile()));
  writeFileSync(path("deep"), pageOfModel(deep(100_000)));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/**
 * A test with an open page, which must end without a message or a request.
 * @param {string} title
 * @param {string} file
 * @param {Parameters<typeof open>[2]} options
 * @param {(page: Page) => Promise<void>} act
 */
function paged(title, file, options, act) {
  test(title, { skip }, async () => {
    const { page, faults, close } = await open(browser, path(file), options);
    try {
      await act(page);
      assert.deepEqual(faults, []);
    } finally {
      await close();
    }
  });
}

/** @param {Page} page @returns {Promise<string>} */
const stateOf = (page) => page.evaluate(() => /** @type {any} */ (globalThis).recrep.state());

/** @param {Page} page @returns {Promise<{samples: number, otherSamples: number | null}>} */
const totalsOf = (page) => page.evaluate(() => /** @type {any} */ (globalThis).recrep.totals());

/** @param {Page} page @param {string} selector */
const text = async (page, selector) => (await page.textContent(selector) ?? "").replaceAll("\u00a0", " ");

/** @param {Page} page @param {string} key @param {number} [times] */
async function press(page, key, times = 1) {
  for (let i = 0; i < times; i++) await page.keyboard.press(key);
  await settle(page);
}

/**
 * Goes to another view of the page, by its address.
 * @param {Page} page
 * @param {string} hash
 */
async function goTo(page, hash) {
  await page.evaluate((hash) => (location.hash = hash), hash);
  await settle(page);
  await settle(page);
  const state = await stateOf(page);
  assert.deepEqual([...new URLSearchParams(state)].sort(), [...new URLSearchParams(hash)].sort());
}

const ALL = MODEL.events[0].samples.length;

paged("opens, shows what was recorded, and asks for nothing", "program", {}, async (page) => {
  assert.equal(await text(page, "#title"), "cargo build --release --workspace");
  assert.match(await text(page, "#facts"), new RegExp(`vm, Linux 6.18 · 2026-11-26 23:28 · 8.59 s · 2 CPUs · ${ALL.toLocaleString("en")} samples of cpu-clock`));
  assert.match(await text(page, "#warnings"), /76 % of the stacks stop/);
  assert.equal(await page.locator("#panel button.item").count(), 14);
  assert.equal(await page.locator(".lane").count(), 5);
  assert.equal((await totalsOf(page)).samples, ALL);
  // The canvas is painted: more than a few colours.
  const colours = await page.evaluate(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("flame-canvas"));
    const data = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, 200).data ?? [];
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) found.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    return found.size;
  });
  assert.ok(colours > 12, String(colours));
});

paged("keys walk the graph, zoom, invert, switch tabs and show help", "program", {}, async (page) => {
  await page.focus("#flame-canvas");
  await press(page, "ArrowDown", 2);
  const first = await text(page, "#status");
  assert.match(first, /^_start · .* %/);
  await press(page, "ArrowRight");
  await press(page, "ArrowLeft");
  await press(page, "ArrowDown");
  await press(page, "Enter");
  assert.match(await stateOf(page), /zoom=\d+\.\d+\.\d+/);
  await press(page, "Backspace");
  assert.match(await stateOf(page), /zoom=\d+\.\d+$/);
  await press(page, " ");
  assert.match(await stateOf(page), /f=\d+/);
  assert.notEqual(await text(page, "#panel h2"), "");
  await press(page, "i");
  assert.equal(await page.getAttribute("#inverted", "aria-pressed"), "true");
  await press(page, "2");
  assert.ok(await page.isVisible("#functions"));
  await press(page, "3");
  assert.ok(await page.isVisible("#callers-parts"));
  await press(page, "4");
  assert.ok(await page.isVisible("#recording"));
  await press(page, "1");
  await press(page, "?");
  assert.ok(await page.isVisible("#help"));
  await press(page, "Escape");
  assert.ok(!(await page.isVisible("#help")));
});

paged("a search counts what it finds, Enter goes to the next, Esc clears", "program", {}, async (page) => {
  await press(page, "/");
  await page.keyboard.type("malloc");
  await settle(page);
  const wanted = MODEL.events[0].samples.filter((one) => one.stack.some((frame) => frame.name.includes("malloc"))).length;
  assert.equal(await text(page, "#found"), `${((wanted / ALL) * 100).toPrecision(3)} % in 1 function`);
  await press(page, "Enter");
  assert.match(await text(page, "#status"), /malloc/);
  await page.click("#only");
  await settle(page);
  assert.equal((await totalsOf(page)).samples, wanted);
  await page.focus("#search");
  await press(page, "Escape");
  assert.equal(await page.inputValue("#search"), "");
  await press(page, "Escape");
  assert.equal((await totalsOf(page)).samples, ALL);
  await press(page, "/");
  await page.keyboard.type("/^mal|^main$/");
  await settle(page);
  assert.match(await text(page, "#found"), /in 5 functions$/);
  await page.fill("#search", "/(/");
  await settle(page);
  assert.equal(await text(page, "#found"), "not a regular expression");
});

paged("the brush filters while it is dragged; handles, keys, Back, Esc", "program", {}, async (page) => {
  const box = await page.locator("#overview").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 4 });
  await settle(page);
  const dragged = (await totalsOf(page)).samples;
  assert.ok(dragged > ALL * 0.2 && dragged < ALL * 0.3, String(dragged));
  await page.mouse.up();
  const steps = MODEL.steps ?? 0;
  const wanted = MODEL.events[0].samples.filter((one) => one.step >= steps / 4 && one.step < steps / 2).length;
  assert.equal((await totalsOf(page)).samples, wanted);
  await page.waitForFunction(() => location.hash.includes("time=128-256"));
  await page.focus("#brush-to");
  await press(page, "ArrowRight");
  await page.waitForFunction(() => location.hash.includes("time=128-261"));
  assert.equal(await page.getAttribute("#brush-to", "aria-valuenow"), "261");
  await page.goBack();
  await settle(page);
  assert.equal((await totalsOf(page)).samples, wanted);
  await page.focus("#flame-canvas");
  await press(page, "Escape");
  assert.equal((await totalsOf(page)).samples, ALL);
  // A click outside takes the range back, too.
  await page.focus("#brush-from");
  await press(page, "End");
  assert.notEqual((await totalsOf(page)).samples, ALL);
  await page.mouse.click(box.x + 5, box.y + 20);
  await settle(page);
  assert.equal((await totalsOf(page)).samples, ALL);
});

paged("a spike stands out against the rest of the time", "program", { hash: "time=300-360" }, async (page) => {
  await page.click("text=Compare with the rest");
  await settle(page);
  const totals = await totalsOf(page);
  assert.equal(totals.samples + (totals.otherSamples ?? 0), ALL);
  const first = page.locator("#panel .item").first();
  assert.match(await first.innerText(), /(rustc::spike::hot|memmove)\s+▲/);
  assert.match(await text(page, "#panel"), /Only in the rest/);
  await press(page, "2");
  await page.click("#functions-head .change button");
  await settle(page);
  assert.equal(await page.getAttribute("#functions-head .change", "aria-sort"), "descending");
  assert.match(await page.locator("#functions-sizer .row .change").first().innerText(), /^▲/);
  await page.click("text=Per second");
  await settle(page);
  assert.match(await page.locator("#functions-sizer .row .change").first().innerText(), /s\/s$/);
  await press(page, "Escape");
  assert.equal((await totalsOf(page)).otherSamples, null);
});

paged("lanes filter, by every kind, and can be compared", "program", {}, async (page) => {
  for (const [kind, of] of /** @type {const} */ ([["command", "command"], ["process", "pid"], ["thread", "tid"], ["cpu", "cpu"]])) {
    await page.selectOption("#lanes-by", kind);
    await settle(page);
    await page.locator(".lane").first().click();
    await settle(page);
    assert.equal(await page.locator(".lane").first().getAttribute("aria-pressed"), "true");
    const label = await page.locator(".lane .lane-name").first().innerText();
    const wanted = MODEL.events[0].samples.filter((one) => {
      const thread = MODEL.threads[one.thread];
      if (of === "cpu") return label === `CPU ${one.cpu}`;
      return of === "command" ? thread.command === label : label.endsWith(` ${thread[of]}`);
    }).length;
    assert.equal((await totalsOf(page)).samples, wanted, label);
  }
  await page.click("text=Compare with the rest");
  await settle(page);
  const totals = await totalsOf(page);
  assert.equal(totals.samples + (totals.otherSamples ?? 0), ALL);
  await page.click("text=Clear");
  await settle(page);
  await page.selectOption("#lanes-by", "thread");
  await settle(page);
  await page.click("#more");
  await settle(page);
  assert.equal(await page.locator(".lane").count(), MODEL.threads.length);
  await page.click("#idle");
  await settle(page);
  const idle = MODEL.events[0].samples.filter((one) => MODEL.threads[one.thread].pid === 0).length;
  assert.equal((await totalsOf(page)).samples, ALL - idle);
});

paged("the table has only rows in view, and is walked with keys", "program", { hash: "tab=functions" }, async (page) => {
  const rows = await page.locator("#functions-sizer .row:visible").count();
  const count = Number(await page.getAttribute("#functions", "aria-rowcount"));
  assert.ok(rows < 30 && count > rows, `${rows} of ${count}`);
  await page.focus("#functions");
  await press(page, "ArrowDown", 2);
  await press(page, "Enter");
  assert.equal(await page.locator("#functions-sizer .row[aria-selected=true]").count(), 1);
  const name = await page.locator("#functions-sizer .row[aria-selected=true] .name .name").innerText();
  assert.equal(await page.locator("#panel h2").first().innerText(), name);
  await press(page, "End");
  const active = await page.getAttribute("#functions", "aria-activedescendant");
  assert.equal(await page.getAttribute(`#${active}`, "aria-rowindex"), String(count));
  // The figures are those of the model.
  const figures = await page.evaluate(() => /** @type {any} */ (globalThis).recrep.functions());
  const malloc = figures.find((/** @type {any} */ one) => one.name === "malloc");
  assert.equal(malloc.self_samples, MODEL.events[0].samples.filter((one) => one.stack[one.stack.length - 1].name === "malloc").length);
  assert.equal(malloc.self_period, malloc.self_samples * 750_000);
});

paged("a function's panel leads on: only its stacks, callers, instructions", "program", {}, async (page) => {
  await page.fill("#search", "spike");
  await page.click("#tab-functions");
  await settle(page);
  await page.locator("#functions-sizer .row").first().click();
  await settle(page);
  const panel = await text(page, "#panel");
  assert.match(panel, /rustc::spike::hot/);
  assert.match(panel, /Called by\s*main\s*100 %/);
  assert.match(panel, /Calls\s*memmove\s*100 %/);
  assert.match(panel, /Instructions.*hot\.rs:10.*mov \(%rdi/s);
  await page.click("text=Only stacks through it");
  await settle(page);
  const wanted = MODEL.events[0].samples.filter((one) => one.stack.some((frame) => frame.name.includes("spike"))).length;
  assert.equal((await totalsOf(page)).samples, wanted);
  await page.locator("#panel button", { hasText: "Callers" }).click();
  await settle(page);
  assert.match(await text(page, "#callers-title"), /Callers of rustc::spike::hot/);
  await page.click("[aria-label='Remove the filter through rustc::spike::hot']");
  await settle(page);
  assert.equal((await totalsOf(page)).samples, ALL);
});

paged("a mouse over a box shows a tip; click selects, double click zooms", "program", { calm: false }, async (page) => {
  const box = await page.locator("#flame-canvas").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + 50, box.y + 50);
  await settle(page);
  assert.ok(await page.isVisible("#tip"));
  assert.match(await text(page, "#tip"), /_start.* % ?: .* samples/s);
  await page.mouse.click(box.x + 50, box.y + 50);
  await settle(page);
  assert.match(await stateOf(page), /f=\d+/);
  await page.mouse.dblclick(box.x + 50, box.y + 50);
  await page.waitForFunction(() => location.hash.includes("zoom="));
  await page.waitForTimeout(300);
  await page.mouse.move(5, 5);
  await settle(page);
  assert.ok(!(await page.isVisible("#tip")));
});

paged("events are switched, and have their own axis and sums", "program", {}, async (page) => {
  await page.selectOption("#event", "1");
  await page.waitForFunction(() => /** @type {any} */ (globalThis).recrep.state().startsWith("event=1"));
  await settle(page);
  assert.equal(await text(page, "#overview-name"), "threads waiting");
  assert.equal((await totalsOf(page)).samples, MODEL.events[1].samples.length);
  assert.match(await text(page, "#facts"), /samples of off-cpu/);
  await page.waitForFunction(() => location.hash === "#event=1");
  await page.goBack();
  await page.waitForFunction(() => /** @type {any} */ (globalThis).recrep.state() === "");
  await settle(page);
  assert.equal((await totalsOf(page)).samples, ALL);
});

paged("lanes have a layer for each thing that threads do, and the timeline zooms", "waits", { hash: "lanes=thread" }, async (page) => {
  assert.deepEqual(await page.locator("#curves .curve").allInnerTexts(), ["waiting", "preempted", "running"]);
  assert.deepEqual([await text(page, "#overview-name"), await text(page, "#overview-top")], ["threads", "3"]);
  // All of the time is filled: what a thread does not wait it runs.
  const ground = await page.evaluate(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("lane-canvas"));
    const { data } = canvas.getContext("2d")?.getImageData(12, 9, canvas.width - 24, 1) ?? { data: [] };
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] === 255 && data[i + 1] === 255 ? 1 : 0;
    return count;
  });
  assert.equal(ground, 0);
  const box = await page.locator("#overview").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 20, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  await page.click("#chips >> text=Zoom");
  await settle(page);
  assert.match(await stateOf(page), /time=128-192&window=128-192/);
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  assert.match(await stateOf(page), /time=144-160&window=128-192/);
  await page.focus("#flame-canvas");
  await press(page, "Z");
  assert.match(await stateOf(page), /time=144-160$/);
});

paged("the stack chart shows one thread in order, and is zoomed by dragging and by keys", "waits", { hash: "tab=chart" }, async (page) => {
  const seen = () => page.evaluate(() => /** @type {any} */ (globalThis).recrep.state());
  assert.equal(await page.locator("#chart-thread option").count(), 3);
  await page.selectOption("#chart-thread", "2");
  await settle(page);
  assert.match(await seen(), /thread=2/);
  const box = await page.locator("#chart-canvas").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width * 0.25, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.375, box.y + 10, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  assert.match(await seen(), /time=6[34]-9[67]/);
  await page.focus("#chart-canvas");
  await press(page, "+");
  assert.match(await seen(), /time=7[12]-8[89]/);
  await press(page, "ArrowRight");
  assert.match(await seen(), /time=7[34]-9[01]/);
  assert.match(await text(page, "#status"), /^4\.\d+ ms to 5\.\d+ ms$/);
  // A stack that is there for long enough has its name in a tip, and how long it was there.
  for (let x = 5; x < box.width && (await text(page, "#status")).indexOf("main") !== 0; x += 40) {
    await page.mouse.move(box.x + x, box.y + 10);
    await settle(page);
  }
  assert.match(await text(page, "#status"), /^main · app · .* of what is shown · (running|waiting|preempted) /);
  await press(page, "Escape");
  assert.doesNotMatch(await seen(), /time=/);
});

paged("a click into a lane shows what the thread did then, with its stack", "waits", { hash: "lanes=thread" }, async (page) => {
  const box = await page.locator("#lane-canvas").boundingBox();
  assert.ok(box);
  const { times } = waits(7);
  const [label] = await page.locator(".lane .lane-name").allInnerTexts();
  const thread = Number(label?.split(" ")[1]) - 1;
  const length = 256 * (1 << 16);
  const longest = times.filter((one) => one.thread === thread && one.activity > 0)
    .reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a));
  const middle = (longest.from + longest.to) / 2;
  await page.mouse.click(box.x + (box.width * middle) / length, box.y + 8);
  await settle(page);
  const what = longest.activity === 1 ? "waiting" : "preempted";
  assert.equal(await text(page, "#panel h2"), `${label}: ${what}`);
  const shown = await text(page, "#panel .card strong");
  const ms = (longest.to - longest.from) / 1e6;
  assert.ok(Math.abs(Number.parseFloat(shown) * (shown.endsWith("µs") ? 1e-3 : 1) - ms) < 0.01, `${shown}, not ${ms}`);
  assert.deepEqual(await page.locator("#panel .item .name").allInnerTexts(),
    [longest.activity === 1 ? "schedule" : "preempt_schedule", "main"]);
  await page.click("text=Only this time");
  await settle(page);
  assert.match(await stateOf(page), /time=/);
  await page.click("#panel >> [aria-label=Close]");
  await settle(page);
  assert.match(await text(page, "#panel h2"), /^Hottest functions/);
});

paged("a clicked wait says what it is for and who ended it, and lanes say it, too", "named", { hash: "lanes=thread" }, async (page) => {
  const box = await page.locator("#lane-canvas").boundingBox();
  assert.ok(box);
  const labels = await page.locator(".lane .lane-name").allInnerTexts();
  const { named } = waits(7);
  const longest = named.filter((one) => one.thread === 0).reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a));
  const lane = labels.indexOf("app 1");
  await page.mouse.click(box.x + (box.width * (longest.from + longest.to)) / 2 / (256 * 256), box.y + lane * 19 + 8);
  await settle(page);
  assert.equal(await text(page, "#panel h2"), "app 1: waiting, futex (lock0)");
  assert.match(await text(page, "#panel"), /Woken by\s*9:app unlock, after [\d.]+ [mµ]s, and ran [\d.]+ [mµ]s later/);
  assert.deepEqual(await page.locator("#panel .item .name").allInnerTexts(),
    ["futex_wake", "unlock", "run", "schedule", "main"]);
  await page.click("text=Only this time");
  await settle(page);
  await page.click("#chips >> text=Zoom");
  await settle(page);
  // The text is in the lane, as there is room for it: letters have more shades than layers.
  const shades = await page.evaluate((top) => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("lane-canvas"));
    const { data } = canvas.getContext("2d")?.getImageData(0, top + 4, canvas.width, 10) ?? { data: new Uint8ClampedArray() };
    return new Set(new Uint32Array(data.buffer)).size;
  }, lane * 19);
  assert.ok(shades > 12, `${shades} shades`);
});

paged("the critical path is a bright line through the lanes", "path", { hash: "lanes=thread" }, async (page) => {
  const rows = await page.locator(".lane .lane-name").allInnerTexts();
  const shown = await page.evaluate((lanes) => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("lane-canvas"));
    const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
    const bright = (/** @type {number} */ y) => {
      let count = 0;
      for (let i = y * canvas.width * 4; i < (y + 1) * canvas.width * 4; i += 4) count += data[i] > 180 && data[i + 1] < 60 && data[i + 2] < 70 ? 1 : 0;
      return count / canvas.width;
    };
    // In the line of each lane, and between the first two, where it changes.
    return { lines: Array.from({ length: lanes }, (_, i) => bright((i + 1) * 19 - 4)), between: bright(19 + 5) };
  }, rows.length);
  const parts = rows.map((row) => PATH.filter((one) => `app ${one.thread + 1}` === row)
    .reduce((sum, one) => sum + one.length, 0) / (256 * 256));
  for (const [i, part] of parts.entries()) {
    assert.ok(Math.abs((shown.lines[i] ?? 0) - part) < 0.02, JSON.stringify({ rows, parts, shown }));
  }
  assert.ok(shown.between > 0, "changes of thread");
});

paged("callers and callees begin with the hottest function", "program", {}, async (page) => {
  await press(page, "3");
  const hottest = await page.locator("#panel button.item .name").first().innerText();
  assert.equal(await text(page, "#callers-title"), `Callers of ${hottest} (the hottest function)`);
  assert.ok(await page.isVisible("#callers-canvas"));
  assert.doesNotMatch(await stateOf(page), /f=/);
});

paged("on a phone the label of the timeline leaves room for its number", "program", { size: { width: 390, height: 844 }, hash: "event=1" }, async (page) => {
  const [name, top] = await page.evaluate(() => ["overview-name", "overview-top"].map((id) => {
    const range = document.createRange();
    range.selectNodeContents(/** @type {Node} */ (document.getElementById(id)));
    const { left, right, top, bottom } = range.getBoundingClientRect();
    return { left, right, top, bottom };
  }));
  assert.ok(name.right <= top.left || name.top >= top.bottom, JSON.stringify({ name, top }));
});

paged("two recordings are compared from the start, and change sides", "diff", {}, async (page) => {
  const totals = await totalsOf(page);
  assert.ok((totals.otherSamples ?? 0) > 0);
  assert.match(await text(page, "#facts"), /app\.data against base\.data/);
  assert.match(await text(page, "#verdict"), /^CHANGED.*Total \+4\.2 %/);
  assert.match(await text(page, "#panel"), /Changed against base\.data.*rustc::spike::hot.*new/s);
  assert.equal(await page.locator("text=Per second").count(), 0);
  await page.click("text=Show base.data instead");
  await settle(page);
  const swapped = await totalsOf(page);
  assert.deepEqual([swapped.samples, swapped.otherSamples], [totals.otherSamples, totals.samples]);
  assert.match(await text(page, "#panel"), /Changed against app\.data.*rustc::spike::hot/s);
  assert.equal(await page.locator("#panel .less").count(), 1);
});

paged("the address opens the same view again", "program", {
  hash: "tab=functions&time=10-200&lane=command:1&search=run&sort=total&by=none",
}, async (page) => {
  assert.equal(await stateOf(page), "tab=functions&by=none&time=10-200&lane=command%3A1&search=run&sort=total");
  assert.equal(await page.inputValue("#search"), "run");
  assert.match(await text(page, "#found"), / % in \d+ functions$/);
  await page.evaluate(() => (location.hash = "#tab=recording&time=99999-3&f=-4&evil=<script>"));
  await settle(page);
  await settle(page);
  assert.equal(await stateOf(page), "tab=recording");
});

for (const width of [1440, 390]) {
  paged(`nothing hostile executes or overflows: ${width}`, "hostile", { size: { width, height: 844 } }, async (page) => {
    for (const hash of ["f=12", "tab=functions&f=12", "tab=callers&f=12", "tab=recording&f=12"]) {
      await goTo(page, hash);
      const found = await page.evaluate(() => ({
        title: document.title,
        strange: document.querySelectorAll("img, svg, iframe, a, object, embed, link, base").length,
        scripts: document.querySelectorAll("script:not([type])").length,
        handlers: [...document.querySelectorAll("*")].filter((one) =>
          [...one.attributes].some((attribute) => attribute.name.startsWith("on"))).length,
        overflow: document.documentElement.scrollWidth - innerWidth,
        polluted: /** @type {any} */ ({})["polluted"],
      }));
      assert.deepEqual(found, { title: "A page", strange: 0, scripts: 1, handlers: 0, overflow: 0, polluted: undefined }, hash);
      await press(page, "i");
      await press(page, "2");
      await press(page, "4");
      await press(page, "1");
    }
  });
}

test("the policy refuses what a page might try from inside", { skip }, async () => {
  const { page, faults, close } = await open(browser, path("program"));
  const tried = await page.evaluate(async () => {
    /** @type {Record<string, string>} */
    const out = {};
    /** @param {string} name @param {() => unknown} act */
    const attempt = async (name, act) => {
      try {
        // Later: what the debugger calls itself is allowed more.
        await new Promise((done) => setTimeout(done));
        await act();
        out[name] = "done";
      } catch (error) {
        out[name] = "refused";
      }
    };
    await attempt("innerHTML", () => (document.body.innerHTML = "<b>x</b>"));
    await attempt("eval", () => (0, eval)("1"));
    await attempt("fetch", () => fetch("data:,x"));
    await attempt("worker", () => new Worker(URL.createObjectURL(new Blob(["1"]))));
    await attempt("script", () => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = 1";
      document.body.append(script);
    });
    await attempt("image", () => new Promise((done, fail) => {
      const image = new Image();
      image.onload = done;
      image.onerror = fail;
      image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
    }));
    return { out, ran: /** @type {any} */ (globalThis).ran };
  });
  assert.deepEqual(tried, {
    out: { innerHTML: "refused", eval: "refused", fetch: "refused", worker: "refused", script: "refused", image: "refused" },
    ran: undefined,
  });
  assert.ok(faults.length > 0);
  await close();
});

paged("100,000 frames deep is drawn, top and bottom", "deep", {}, async (page) => {
  await page.focus("#flame-canvas");
  await press(page, "ArrowDown", 5);
  assert.match(await text(page, "#status"), /^f3 · deep · 100 %/);
  const took = await page.evaluate(async () => {
    const scroller = document.getElementById("flame-scroller");
    const begin = performance.now();
    for (let i = 0; scroller && i < 20; i++) {
      scroller.scrollTop += 4000;
      await new Promise((done) => requestAnimationFrame(done));
    }
    return { ms: performance.now() - begin, top: scroller?.scrollTop ?? 0 };
  });
  assert.ok(took.top > 10_000, JSON.stringify(took));
  await press(page, "i");
  await press(page, "2");
  assert.equal(await page.getAttribute("#functions", "aria-rowcount"), "51");
});

test("a page that is damaged, or of another version, says so in a sentence", { skip }, async () => {
  const columns = columnsOf(program(200));
  /** @type {[string, Map<string, Uint8Array>, RegExp][]} */
  const cases = [
    ["cut", new Map(columns).set("gaps0", (columns.get("gaps0") ?? new Uint8Array()).slice(0, 9)), /its column gaps0 ends early/],
    ["none", new Map(), /its column meta is missing/],
    ["json", new Map(columns).set("meta", Uint8Array.of(123)), /its column meta is no JSON/],
    ["version", new Map(columns).set("meta", new TextEncoder().encode('{"format": 2, "names": 0, "threads": 0, "nodes": 0}')), /format of another version/],
  ];
  for (const [name, broken, wanted] of cases) {
    writeFileSync(path(name), pageOf(broken));
    const { page, faults, close } = await open(browser, path(name));
    assert.match(await text(page, "#opening"), wanted);
    assert.ok(!(await page.isVisible("#page")));
    assert.deepEqual(faults, []);
    await close();
  }
});

paged("the button overrides light and dark; the warnings can be hidden", "program", { dark: true }, async (page) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await ground();
  await page.click("#scheme");
  await settle(page);
  assert.notEqual(await ground(), dark);
  await page.click("[aria-label='Hide the warnings']");
  await settle(page);
  assert.ok(!(await page.isVisible("#warnings")));
});

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Views that are looked at by axe, by their addresses, for each page. */
const VIEWS = /** @type {const} */ ({
  program: ["", "f=60&time=100-300&compare=1", "tab=functions&f=60&search=run",
    "tab=functions&time=300-360&compare=1&sort=change", "tab=callers&f=60", "tab=recording"],
  diff: [""],
  waits: ["tab=chart", "lanes=thread&time=128-192&window=100-200"],
});
for (const dark of [false, true]) {
  for (const size of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
    for (const [file, hashes] of Object.entries(VIEWS)) {
      test(`axe finds nothing: ${file}, ${dark ? "dark" : "light"}, ${size.width}`, { skip }, async () => {
        const { page, close } = await open(browser, path(file), { size, dark });
        const cdp = await page.context().newCDPSession(page);
        // The policy refuses scripts of others, so axe comes in by the debugger.
        await cdp.send("Runtime.evaluate", { expression: AXE });
        for (const hash of hashes) {
          await goTo(page, hash);
          const found = await page.evaluate(async () => {
            const results = await /** @type {any} */ (globalThis).axe.run();
            return results.violations.map((/** @type {any} */ one) =>
              `${one.id}: ${one.nodes.slice(0, 3).map((/** @type {any} */ node) => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join(" | ")}`);
          });
          assert.deepEqual(found, [], `#${hash}`);
        }
        await close();
      });
    }
  }
}
