// Measures a page against its budgets, and prints them as JSON: size, heap, and milliseconds by the
// clock and of the page's main thread. By itself it makes a page like one of 383 MB of recording:
// 262,000 nodes, 1.5 million entries, 2.9 million samples, 4,142 threads, 29,000 functions.
//
//   node measure.mjs [FILE.html]

import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, open, settle } from "./chromium.mjs";
import { pageOf } from "./made.mjs";
import { large } from "./models.mjs";

const DRAGS = 40;

const folder = mkdtempSync(join(tmpdir(), "recrep-page-"));
const made = join(folder, "large.html");
const file = process.argv[2] ?? made;
if (file === made) writeFileSync(made, pageOf(large()));
const browser = await launch();
try {
  const { page, faults, cpu } = await open(browser, file);
  const opened = await page.evaluate(() => Number(document.documentElement.dataset["ready"]));
  /** @type {Record<string, unknown>} */
  const out = {
    page_bytes: Buffer.byteLength(pageOf(new Map())), file_bytes: statSync(file).size,
    open: { clock_ms: opened, thread_ms: await cpu() },
    heap_bytes: await page.evaluate(() => /** @type {any} */ (performance).memory?.usedJSHeapSize ?? null),
  };
  /** @param {string} name @param {number} times @param {(i: number) => Promise<unknown>} act */
  const measure = async (name, times, act) => {
    const [clock, thread] = [performance.now(), await cpu()];
    for (let i = 0; i < times; i++) {
      await act(i);
      await settle(page);
    }
    out[name] = {
      clock_ms: Math.round((performance.now() - clock) / times),
      thread_ms: Math.round((await cpu() - thread) / times),
    };
  };
  const box = await page.locator("#overview").boundingBox();
  if (box === null) throw new Error("no timeline");
  await page.mouse.move(box.x + 200, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 220, box.y + 20);
  await settle(page);
  await measure("drag", DRAGS, (i) => page.mouse.move(box.x + 220 + i * 9, box.y + 20));
  await page.mouse.up();
  await page.keyboard.press("Escape");
  await settle(page);
  await measure("inverted", 1, () => page.keyboard.press("i"));
  await measure("upright", 1, () => page.keyboard.press("i"));
  await page.focus("#search");
  await measure("search_per_key", 4, (i) => page.keyboard.press("func".charAt(i)));
  await page.fill("#search", "");
  await settle(page);
  await measure("by_thread", 1, () => page.selectOption("#graph-by", "thread"));
  await measure("functions", 1, () => page.click("#tab-functions"));
  await measure("callers", 1, async () => {
    await page.locator("#panel button.item").first().click();
    await page.click("#tab-callers");
  });
  process.stdout.write(JSON.stringify({ ...out, faults }, null, 1) + "\n");
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
