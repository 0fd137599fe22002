// What stands around the graphs: header, warnings, controls, chips of the filters, legend.

import { css, FILL, FILLS } from "./colours.js";
import { button, byId, el, setText, swatch } from "./dom.js";
import { counted, duration, shareOf, thousands } from "./format.js";
import { clean } from "./names.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./state.js").Filter} Filter */
/** @typedef {import("./colours.js").Palette} Palette */

/** Warnings shown above everything, minor ones left out; the Recording tab has all. */
const WARNINGS = 3;
const LEGEND = 7;

/**
 * Fills the header, which does not change but for the event.
 * @param {View} view
 */
export function fillHeader(view) {
  const { meta } = view.recording;
  const { state, event } = view;
  const side = meta.sides[state.side];
  setText(byId("title"), clean(meta.title, 300));
  const facts = [];
  if (view.hasTwo) {
    facts.push(`${clean(side?.name ?? "", 80)} against ${view.otherName}`);
  }
  const place = [side?.host, side?.os].filter(Boolean).map((text) => clean(String(text), 80));
  if (place.length > 0) facts.push(place.join(", "));
  if (side?.date) facts.push(clean(side.date, 40));
  if (side?.duration) facts.push(duration(side.duration));
  if (side?.cpus) facts.push(`${side.cpus} CPU${side.cpus === 1 ? "" : "s"}`);
  const samples = thousands(event.meta.samples[state.side]);
  facts.push(`${samples} samples of ${clean(event.meta.name, 80)}`);
  setText(byId("facts"), facts.join(" · "));
}

/**
 * Fills the verdict of a comparison of two recordings.
 * @param {View} view
 */
export function fillVerdict(view) {
  const host = byId("verdict");
  const { verdict } = view;
  host.hidden = verdict === null;
  if (verdict === null) return;
  const lines = verdict.lines.map((line) => el("p", {}, clean(line, 2000)));
  if (view.state.filters.length > 0) {
    lines.push(el("p.note", {}, "This is of the whole recordings: no part of them is judged."));
  }
  host.replaceChildren(el("strong", {}, clean(verdict.word, 40)), ...lines);
}

/**
 * Fills the bar of warnings.
 * @param {View} view
 * @param {() => void} onMore
 */
export function fillWarnings(view, onMore) {
  const warnings = view.recording.meta.warnings.filter((one) => one.is_minor !== true);
  const bar = byId("warnings");
  const list = el("ul", {}, ...warnings.slice(0, WARNINGS).map((one) =>
    el("li", {}, el("span.mark", { "aria-hidden": "true" }, "▲"),
      " " + clean(one.message, 600))));
  const more = warnings.length - WARNINGS;
  if (more > 0) {
    list.append(el("li", {}, button("button.link", `${more} more in Recording`, onMore)));
  }
  const hide = button("button.plain", "×", () => (bar.hidden = true),
    { "aria-label": "Hide the warnings" });
  bar.replaceChildren(list, hide);
  bar.hidden = warnings.length === 0;
}

/**
 * Returns what a filter is called on its chip: what kind it is, and which.
 * @param {View} view
 * @param {Filter} filter
 * @returns {[string, string]}
 */
function chipText(view, filter) {
  const { step } = view.recording.meta;
  switch (filter.kind) {
    case "time":
      return ["time", rangeText(filter, step)];
    case "lane": {
      const groups = view.groups(filter.lane);
      const group = groups.keys.indexOf(filter.key);
      const label = group < 0 ? String(filter.key) : groups.labels[group] ?? "";
      return [filter.lane === "cpu" ? "" : filter.lane, clean(label, 60) || "(no name)"];
    }
    case "through":
      return ["through", view.name(filter.frame, 60)];
    case "only":
      return ["only", clean(filter.text, 60)];
    case "idle":
      return ["", "without idle"];
  }
}

/**
 * Returns a range of time in seconds, to a hundredth of its length, but not finer than a step.
 * @param {{from: number, to: number}} range
 * @param {number} step
 */
function rangeText({ from, to }, step) {
  const fine = Math.max(((to - from) * step) / 100, step);
  const places = Math.min(Math.max(Math.ceil(9 - Math.log10(fine)), 0), 9);
  const [begin, end] = [from, to].map((at) => ((at * step) / 1e9).toFixed(places));
  return `${begin} – ${end} s`;
}

/**
 * Returns whether a range of time is all that the timeline shows.
 * @param {{from: number, to: number}} time
 * @param {{from: number, to: number}} window
 */
function isShownWhole(time, window) {
  return time.from === window.from && time.to === window.to;
}

/**
 * Fills the bar of filters.
 * @param {import("./app.js").App} app
 */
export function fillFilters(app) {
  const { view, state } = app;
  const { a } = view;
  const isWhole = state.filters.length === 0;
  const share = shareOf(a.all, view.wholeWeight);
  const samples = `${thousands(a.allSamples)} samples`;
  const isCount = view.event.meta.unit === "samples";
  const amount = isCount ? samples : `${view.amount(a.all)} · ${samples}`;
  setText(byId("shown"), isWhole ? `all: ${amount}` : `${share} of all: ${amount}`);
  const chips = byId("chips");
  const comparable = state.time() ?? state.lane();
  const parts = [];
  for (const filter of state.filters) {
    const [kind, text] = chipText(view, filter);
    const chip = el("span.chip", {}, el("span.what", {}, kind), el("b", {}, text));
    if (filter === comparable && !view.hasTwo) {
      chip.append(button("button.pill", "Compare with the rest", () => app.compare(),
        { "aria-pressed": String(state.compare) }));
    }
    if (filter.kind === "time" && !isShownWhole(filter, view.window)) {
      chip.append(button("button.pill", "Zoom", () => app.zoomTime(true),
        { title: "Show this time over the whole width of the timeline" }));
    }
    chip.append(button("button.plain", "×", () => app.removeFilter(filter),
      { "aria-label": `Remove the filter ${kind} ${text}` }));
    parts.push(chip);
  }
  if (view.hasTwo) {
    parts.push(button("button.small", `Show ${view.otherName} instead`, () => app.swapSides()));
  }
  if (view.b !== null && !view.hasTwo) {
    const rate = () => app.change((s) => (s.perSecond = !s.perSecond), {});
    parts.push(button("button.small", "Per second", rate, {
      "aria-pressed": String(state.perSecond), title: "Compare amounts per second, not shares",
    }));
  }
  if (state.filters.length > 0) parts.push(button("button.link", "Clear", () => app.clear()));
  chips.replaceChildren(...parts);
}

/**
 * Fills the legend: modules with their shares of self time, or the scale of changes.
 * @param {View} view
 * @param {Palette} palette
 */
export function fillLegend(view, palette) {
  const host = byId("legend");
  if (view.b !== null && view.matches === 0) {
    host.replaceChildren("less ", ...[0, 4, 8, 12, 16].map((step) => swatch(css(palette.change[step]))),
      ` more than in ${view.otherName}; grey: ` +
        (view.hasTwo ? "no change that rep diff marks" : "no more than chance"));
    return;
  }
  /** @type {Map<string, {weight: number, fill: number}>} */
  const shares = new Map();
  const { sums, recording } = view;
  const byModule = new Float64Array(recording.meta.modules.length + 1);
  const fillOfModule = new Uint8Array(byModule.length);
  let kernel = 0;
  let unnamed = 0;
  for (let frame = 0; frame < sums.self.length; frame++) {
    const self = sums.self[frame];
    if (self === 0) continue;
    const fill = view.fills[frame] ?? FILLS;
    if (fill >= FILL.kernel && fill < FILL.unnamed) kernel += self;
    else if (fill >= FILL.unnamed) unnamed += self;
    else {
      const module = recording.module[frame];
      byModule[module] += self;
      fillOfModule[module] = fill - (fill % 3) + 1;
    }
  }
  shares.set("kernel", { weight: kernel, fill: FILL.kernel + 1 });
  shares.set("no name", { weight: unnamed, fill: FILL.unnamed + 1 });
  byModule.forEach((weight, module) => {
    const name = recording.meta.modules[module - 1]?.name ?? "";
    const key = name === "kernel" || name === "no name" ? name + " " : name;
    const known = shares.get(key)?.weight ?? 0;
    shares.set(key, { weight: weight + known, fill: fillOfModule[module] });
  });
  const heaviest = [...shares].filter((one) => one[1].weight > 0)
    .sort((x, y) => y[1].weight - x[1].weight || (x[0] < y[0] ? -1 : 1)).slice(0, LEGEND);
  host.replaceChildren(...heaviest.map(([name, { weight, fill }]) =>
    el("span.entry", {}, swatch(css(palette.fills[fill])),
      el("span.module", { title: clean(name, 200) }, clean(name, 24)),
      el("b", {}, shareOf(weight, view.a.all)))));
}

/**
 * Fills the figure beside the search.
 * @param {View} view
 */
export function fillSearch(view) {
  const { matched, matches, finder } = view;
  const text = matched === null ? ""
    : finder.error !== "" ? finder.error
    : matches === 0 ? "nothing found"
    : `${shareOf(view.matchedWeight(), view.a.all)} in ${counted(matches, "function")}`;
  setText(byId("found"), text);
  byId("only").hidden = matches === 0;
}

/**
 * Sets the controls to the state.
 * @param {View} view
 * @param {import("./timeline.js").Timeline} timeline
 */
export function fillControls(view, { lanesLeft, lanesShown }) {
  const { state } = view;
  /** @param {string} id @param {boolean} isOn */
  const press = (id, isOn) => byId(id).setAttribute("aria-pressed", String(isOn));
  press("inverted", state.inverted);
  press("idle", state.hidesIdle());
  const idle = view.idleWeight;
  byId("idle").hidden = idle === 0;
  setText(byId("idle"), `Hide idle (${shareOf(idle, view.wholeWeight)})`);
  byId("zoom-out").hidden = state.window === null;
  const more = byId("more");
  more.hidden = lanesLeft <= 0 && lanesShown <= 5;
  setText(more, lanesLeft > 0 ? "More" : "Fewer");
  const choices = { "lanes-by": state.lanes, "graph-by": state.by, event: String(state.event) };
  for (const [id, value] of Object.entries(choices)) {
    const select = byId(id);
    if (select instanceof HTMLSelectElement) select.value = value;
  }
  for (const button of byId("time-choice").children) {
    const isShown = button instanceof HTMLElement && button.dataset["event"] === choices.event;
    button.setAttribute("aria-pressed", String(isShown));
  }
  byId("graph-controls").hidden = state.tab !== "flame" && state.tab !== "callers";
  byId("inverted").hidden = state.tab !== "flame";
}
