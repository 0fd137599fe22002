// Opens flame graphs in Chromium, zooms and resets those that have a script. Fails if one writes to
// the console or asks for anything, or if a text sticks out of its box.
//
//   node picture.mjs FILE.svg... [--screenshot X.png]

import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { launch } from "./chromium.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true, options: { screenshot: { type: "string" } },
});
if (positionals.length === 0) throw new Error("which picture?");
const browser = await launch();
try {
  for (const file of positionals) {
    for (const fault of await check(file)) {
      console.error(`${file}: ${fault}`);
      process.exitCode = 1;
    }
  }
} finally {
  await browser.close();
}

/** @param {string} file */
async function check(file) {
  const page = await browser.newPage({ viewport: { width: 1220, height: 900 } });
  /** @type {string[]} */
  const faults = [];
  const url = pathToFileURL(file).href;
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== url) faults.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  if (values.screenshot !== undefined) await page.screenshot({ path: values.screenshot });
  const wide = await page.evaluate(() => {
    const out = [];
    for (const group of document.querySelectorAll("g")) {
      const box = group.querySelector("rect")?.getBoundingClientRect();
      const text = group.querySelector("text")?.getBoundingClientRect();
      if (box && text && text.right > box.right + 1) out.push(group.querySelector("title")?.textContent ?? "");
    }
    return out;
  });
  faults.push(...wide.map((name) => `text wider than its box: ${name}`));
  if (await page.locator("script").count() > 0) {
    const boxes = page.locator("g");
    const before = await boxes.nth(2).locator("rect").getAttribute("width");
    await boxes.nth(2).click({ position: { x: 1, y: 5 } });
    await page.keyboard.press("Escape");
    const after = await boxes.nth(2).locator("rect").getAttribute("width");
    if (Math.abs(Number(before) - Number(after)) > 1) faults.push(`reset zoom: ${before}, then ${after}`);
  }
  await page.close();
  return faults;
}
