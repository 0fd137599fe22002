// The Recording tab: what was read, what was lost, what cannot be trusted, how to go on.

import { button, byId, copy, el } from "./dom.js";
import { counted, duration, shareOf, size, thousands } from "./format.js";
import { clean } from "./names.js";

/**
 * Makes a table.
 * @param {string} label
 * @param {string[]} heads The first column is text, the others are figures.
 * @param {string[][]} rows
 */
function table(label, heads, rows) {
  return el("div.wide", { tabindex: "0", role: "region", "aria-label": label },
    el("table", {},
      el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...rows.map((row) =>
        el("tr", {}, ...row.map((cell) => el(/^\d/.test(cell) ? "td.figure" : "td", {}, cell)))))));
}

/**
 * Makes the files of one recording.
 * @param {import("./model.js").Side} side
 */
function files(side) {
  const parts = [];
  for (const file of side.files) {
    const kinds = Object.entries(file.records)
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    parts.push(
      el("p", {}, el("code", {}, clean(file.path, 300)), ` · ${size(file.bytes)} · `,
        file.complete ? "complete" : "not complete: recording stopped before its end was written",
        ` · lost: ${thousands(file.lost_events)} events, ${thousands(file.lost_samples)} samples`),
      el("p.note", {}, kinds.slice(0, 30).map(([kind, count]) =>
        `${clean(kind, 40)} ${thousands(count)}`).join(", ")));
  }
  const known = [["command", side.command], ["host", side.host], ["system", side.os],
    ["architecture", side.arch], ["date", side.date],
    ["clock at the first sample", side.begin === null ? null : side.begin + " s"]];
  const list = el("dl", {});
  for (const [what, value] of known) {
    if (value) list.append(el("dt", {}, String(what)), el("dd", {}, clean(value, 400)));
  }
  return [...parts, list];
}

/**
 * Fills the tab.
 * @param {import("./app.js").App} app
 */
export function fillRecording(app) {
  const { view } = app;
  const { meta } = view.recording;
  const parts = [];
  /** @param {string} title @param {(Node | string)[]} content */
  function section(title, ...content) {
    if (content.length > 0) parts.push(el("section", {}, el("h2", {}, title), ...content));
  }
  const warnings = meta.warnings.map((one) => el("li", {}, clean(one.message, 1000)));
  const remedies = meta.remedies.map((one) => el("li", {}, clean(one, 1000)));
  if (warnings.length > 0) section("What to know", el("ul", {}, ...warnings));
  if (meta.broken.length > 0) {
    section("Stacks that do not reach the start of their program",
      table("Broken stacks by program",
        ["Program", "Stacks", "Broken", "Cut at the greatest depth", "What helps"],
        meta.broken.map((one) => [clean(one.program, 100), thousands(one.stacks),
          `${thousands(one.broken)} (${shareOf(one.broken, one.stacks)})`,
          thousands(one.cut), clean(one.remedy, 300)])));
  }
  if (remedies.length > 0) section("What would show more", el("ul", {}, ...remedies));
  if (meta.views.length > 0) {
    section("How to go on", ...meta.views.map((one) => {
      const line = clean(one.line, 1000);
      return el("div.way", {}, el("span", {}, clean(one.what, 200)), el("code", {}, line),
        button("button.small", "Copy", () => copy(app, one.line),
          { "aria-label": `Copy: ${clean(one.what, 200)}` }));
    }));
  }
  meta.sides.forEach((side, i) => {
    const name = `: ${clean(side.name, 200)}${i === 1 ? " (base)" : ""}`;
    section("Files" + (meta.sides.length > 1 ? name : ""), ...files(side));
  });
  section("Events", table("Events", ["Event", "Samples", "Period", "Lost samples"],
    meta.events.map((event) => [
      clean(event.name, 100),
      event.samples.map(thousands).join(" / "),
      event.period.map(event.unit === "ns" ? duration : thousands).join(" / "),
      thousands(event.lost_samples)])));
  const weighted = view.event.tree.weight !== null;
  const exact = [
    `Time is kept in ${counted(meta.steps, "step")} of ${duration(meta.step)}.`,
    weighted ? "Samples stand for different amounts; where a filter is on, each is rounded to a small " +
      "unit, so that sums may be off by less than one unit for each stack and thread. Sums of the " +
      "whole recording are exact."
      : "All counts are exact.",
  ];
  if (meta.cut !== null) {
    const all = meta.events[0]?.samples[0] ?? 0;
    exact.push(`To keep this page small, stacks with fewer than ${thousands(meta.cut.least)} samples ` +
      `end in “(rare stacks)”: ${thousands(meta.cut.samples)} samples (${shareOf(meta.cut.samples, all)}).`);
  }
  section("How exact this page is", ...exact.map((text) => el("p", {}, text)));
  parts.push(el("p.note", {},
    `Made by ${clean(meta.tool, 60)}. This page fetches nothing and works offline.`));
  byId("recording").replaceChildren(...parts);
}
