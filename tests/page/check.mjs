// Opens pages in Chromium and says how it went, as JSON on standard output: an object, of several
// pages an array. Fails if a page writes to the console or asks for anything.
//
//   node check.mjs FILE.html... [--numbers] [--time A-B] [--lane KIND:KEY] [--side N] [--event N]
//     [--courses KIND] [--compare] [--state HASH] [--screenshot X.png] [--size 1440x900] [--dark]
//
// --numbers       every function with a sample: name, module, samples and period, self and total
// --time A-B      only this time: seconds since the first sample, rounded to the page's steps
//                 (`step_ns` in the answer; a sample is in if from <= its step < to)
// --lane KIND:KEY only this lane: command:NAME, process:PID, thread:TID, cpu:N
// --side N        0: the recording (the default); 1: the one it is compared with
// --event N       events are numbered from 0
// --courses KIND  what the lanes of a kind show in each 16th of the recording

import { parseArgs } from "node:util";
import { CHROMIUM, launch, open, settle } from "./chromium.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    numbers: { type: "boolean" }, time: { type: "string" }, lane: { type: "string" },
    side: { type: "string" }, event: { type: "string" }, compare: { type: "boolean" },
    state: { type: "string" }, screenshot: { type: "string" }, size: { type: "string" },
    dark: { type: "boolean" }, courses: { type: "string" },
  },
});

process.on("uncaughtException", (error) => {
  console.error(`check: ${error.message}`);
  process.exit(1);
});

/** @param {string} message @returns {never} */
function fail(message) {
  throw new Error(message);
}

if (positionals.length === 0) fail("which page?");
if (CHROMIUM === "") fail("no Chromium found (set CHROMIUM to its path)");
const [width, height] = (values.size ?? "1440x900").split("x").map(Number);
if (!(width > 0) || !(height > 0)) fail("--size is WIDTHxHEIGHT");

const browser = await launch();
try {
  const results = [];
  for (const file of positionals) results.push(await check(file));
  process.stdout.write(JSON.stringify(results.length === 1 ? results[0] : results, null, 1) + "\n");
  if (results.some((result) => result.faults.length > 0)) process.exitCode = 1;
} finally {
  await browser.close();
}

/** @param {string} file */
async function check(file) {
  const hash = [values.state, values.event && `event=${values.event}`].filter(Boolean).join("&");
  const { page, faults, cpu, close } = await open(browser, file, {
    size: { width, height }, dark: values.dark ?? false, hash });
  const opened = await cpu();
  const failure = await page.evaluate(() => document.getElementById("page")?.hidden
    ? document.getElementById("opening")?.textContent ?? "nothing is shown" : null);
  if (failure !== null) fail(`${file}: ${failure}`);
  const time = values.time?.split("-").map(Number);
  if (time !== undefined && (time.length !== 2 || time.some(Number.isNaN))) fail("--time is A-B");
  const [kind, key] = values.lane?.split(/:(.*)/s) ?? [];
  const found = await page.evaluate(({ time, kind, key, side, compare }) => {
    const { recrep } = /** @type {any} */ (globalThis);
    let lane = null;
    if (kind !== undefined) {
      const all = recrep.lanes(kind);
      const wanted = all.find((/** @type {any} */ one) => String(one.key) === key || one.label === key);
      if (wanted === undefined) return `no lane ${kind}:${key}`;
      lane = { kind, key: wanted.key };
    }
    if (lane !== null || time !== null || side !== 0 || compare) recrep.show({ time, lane, side, compare });
    return "";
  }, { time: time ?? null, kind, key, side: Number(values.side ?? 0), compare: values.compare ?? false });
  if (found !== "") fail(found);
  await settle(page);
  if (values.screenshot !== undefined) await page.screenshot({ path: values.screenshot });
  const result = await page.evaluate(({ wantsNumbers, courses }) => {
    const { recrep } = /** @type {any} */ (globalThis);
    return {
      opened_ms: Number(document.documentElement.dataset["ready"]),
      heap_bytes: /** @type {any} */ (performance).memory?.usedJSHeapSize ?? null,
      state: recrep.state(),
      step_ns: recrep.meta().step,
      steps: recrep.meta().steps,
      begin: recrep.meta().sides[0].begin,
      verdicts: recrep.meta().verdicts,
      totals: recrep.totals(),
      ...(wantsNumbers ? { functions: recrep.functions() } : {}),
      ...(courses ? { courses: recrep.courses(courses, 16) } : {}),
    };
  }, { wantsNumbers: values.numbers ?? false, courses: values.courses ?? "" });
  await close();
  return { opened_cpu_ms: opened, ...result, faults };
}
