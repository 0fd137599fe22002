// Opens pages in Chromium, and counts what they must not do: messages and requests.

import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const PLACES = [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome"];

/** Path of Chromium, or "" where there is none: its shell without windows takes half the time. */
export const CHROMIUM = PLACES.find((path) => path !== "" && existsSync(path)) ?? "";

/**
 * Starts Chromium.
 * @param {string[]} [args]
 */
export function launch(args = []) {
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args: [...sandbox, "--enable-precise-memory-info", ...args] });
}

/**
 * A page and what it did that it must not.
 * @typedef {object} Opened
 * @property {import("playwright-core").Page} page
 * @property {string[]} faults Console messages, errors and requests.
 * @property {() => Promise<number>} cpu Milliseconds of the page's main thread so far.
 * @property {() => Promise<void>} close
 */

/**
 * Opens a file.
 * @param {import("playwright-core").Browser} browser
 * @param {string} file
 * @param {{size?: {width: number, height: number}, dark?: boolean, calm?: boolean, hash?: string,
 *   touch?: boolean, scale?: number}} [options]
 * @returns {Promise<Opened>}
 */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({
    viewport: options.size ?? { width: 1440, height: 900 },
    colorScheme: options.dark ? "dark" : "light",
    reducedMotion: options.calm === false ? "no-preference" : "reduce",
    hasTouch: options.touch ?? false,
    deviceScaleFactor: options.scale ?? 1,
  });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  const url = pathToFileURL(file).href;
  page.on("console", (message) => faults.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url) faults.push(`request: ${request.url().slice(0, 200)}`);
  });
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpu = async () => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return Math.round(1000 * (metrics.find((one) => one.name === "TaskDuration")?.value ?? 0));
  };
  await page.goto(url + (options.hash ? "#" + options.hash : ""));
  await page.waitForFunction(() => document.documentElement.dataset["ready"] !== undefined ||
    (document.getElementById("page")?.hidden === true &&
      document.getElementById("opening")?.textContent?.startsWith("This page cannot")), null, { timeout: 120_000 });
  await settle(page);
  return { page, faults, cpu, close: () => context.close() };
}

/**
 * Waits until what was asked for is drawn.
 * @param {import("playwright-core").Page} page
 */
export async function settle(page) {
  await page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => done(null)))));
}
