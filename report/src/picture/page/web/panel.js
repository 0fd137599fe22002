// The panel: the hottest functions, or all about the one that is selected.

import { css } from "./colours.js";
import { button, byId, copy, el, setBar, swatch } from "./dom.js";
import { ACTIVITY, ACTIVITY_WORDS } from "./extents.js";
import { waitAt } from "./waits.js";
import { digits, duration, percent, shareOf, thousands } from "./format.js";
import { clean, SHOWN } from "./names.js";
import { origin } from "./tip.js";
import { KIND } from "./model.js";
import { changeText } from "./table.js";

/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./app.js").App} App */

const HOTTEST = 14;
const RELATIVES = 10;
/** Most instructions shown: those around the hottest ones. */
const INSTRUCTIONS = 400;

/** The panel. */
export class Panel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.view = app.view;
    this.palette = app.palette;
    this.host = byId("panel");
    /** Box that was selected in a graph, so that it can be zoomed. @type {Box | null} */
    this.box = null;
    /** What a thread did at a moment, if that was chosen. @type {(import("./moments.js").Stay & {tid: number}) | null} */
    this.stay = null;
  }

  /** Fills the panel. */
  refresh() {
    const { selected } = this.view.state;
    this.host.classList.toggle("chosen", selected >= 0 || this.stay !== null);
    const focused = document.activeElement;
    const hadFocus = focused instanceof HTMLElement && this.host.contains(focused)
      ? focused.dataset["key"] : undefined;
    const parts = selected >= 0 ? this.ofFunction(selected)
      : this.stay !== null ? this.ofStay(this.stay)
      : this.view.b === null ? this.hottest() : this.changes();
    this.host.replaceChildren(...parts);
    if (hadFocus !== undefined) {
      for (const one of this.host.querySelectorAll("button")) {
        if (one.dataset["key"] === hadFocus) one.focus();
      }
    }
  }

  /**
   * Makes a row with a bar.
   * @param {string} name
   * @param {string} figure
   * @param {number} part Length of the bar.
   * @param {number} frame −1: no function.
   */
  row(name, figure, part, frame) {
    const inner = [setBar(el("span.bar"), part), el("span.name", {}, name), el("span.figure", {}, figure)];
    if (frame < 0) return el("div.item.aside", {}, ...inner);
    const made = button("button.item", "", () => this.app.select(frame),
      { title: `${name} · ${origin(this.view, frame)}` });
    made.dataset["key"] = String(frame);
    made.append(...inner);
    return made;
  }

  hottest() {
    const { view } = this;
    const { sums, recording } = view;
    const all = view.a.all;
    let unnamed = 0;
    let listed = 0;
    let count = 0;
    for (let frame = 0; frame < sums.self.length; frame++) {
      const self = sums.self[frame];
      if (self === 0) continue;
      const kind = recording.kind[frame] ?? KIND.unnamed;
      if ([KIND.unnamed, KIND.inferred, KIND.cut].includes(kind)) unnamed += self;
      if (![KIND.unnamed, KIND.cut].includes(kind)) {
        listed += self;
        count += 1;
      }
    }
    const shown = view.hottest(HOTTEST);
    const most = sums.self[shown[0]] ?? 0;
    let rest = listed;
    for (const frame of shown) rest -= sums.self[frame];
    const parts = [el("h2", {}, `Hottest functions, by ${this.measure} in them`)];
    for (const frame of shown) {
      const self = sums.self[frame];
      parts.push(this.row(view.name(frame), shareOf(self, all), self / most, frame));
    }
    if (shown.length === 0) parts.push(el("p.note", {}, "Nothing is in this selection."));
    const notes = [];
    if (count > shown.length) {
      notes.push(`${thousands(count - shown.length)} other functions: ${shareOf(rest, all)}`);
    }
    if (unnamed > 0) notes.push(`without a name: ${shareOf(unnamed, all)}`);
    for (const note of notes) parts.push(el("p.note", {}, note));
    return parts;
  }

  get measure() {
    const { unit } = this.view.event.meta;
    return unit === "ns" ? "time" : unit;
  }

  /** What `rep diff` marks between two recordings. */
  markedChanges() {
    const { view } = this;
    const parts = [el("h2", {}, `Changed against ${view.otherName}`)];
    const changes = view.verdict?.changes ?? [];
    const most = Math.max(...changes.map((one) => Math.abs(one.change)), 1);
    for (const { frame, change, text } of changes.slice(0, HOTTEST)) {
      const row = this.row(view.name(frame), text, Math.abs(change) / most, frame);
      row.classList.add(change * (view.state.side === 0 ? 1 : -1) > 0 ? "more" : "less");
      parts.push(row);
    }
    if (changes.length === 0) {
      parts.push(el("p.note", {}, "No single function: the verdict above says what would have been seen."));
    }
    return parts;
  }

  /** What changed most, and what is only in the rest. */
  changes() {
    const { view } = this;
    if (view.hasTwo) return this.markedChanges();
    const { sums, otherSums } = view;
    if (otherSums === null) return [];
    /** @type {{frame: number, size: number, isGone: boolean}[]} */
    const changed = [];
    for (let frame = 0; frame < sums.total.length; frame++) {
      if (!(sums.total[frame] > 0) && !(otherSums.total[frame] > 0)) continue;
      const { a, b, change } = view.functionChange(frame);
      if (change !== 0) changed.push({ frame, size: Math.abs(a - b), isGone: a === 0 });
    }
    changed.sort((a, b) => b.size - a.size || a.frame - b.frame);
    const parts = [el("h2", {}, `Changed most against ${view.otherName}`)];
    const most = changed[0]?.size ?? 0;
    for (const { frame, size } of changed.filter((one) => !one.isGone).slice(0, HOTTEST)) {
      const { text, tone } = changeText(view, frame);
      const row = this.row(view.name(frame), text, size / most, frame);
      row.classList.add(tone);
      parts.push(row);
    }
    if (parts.length === 1) parts.push(el("p.note", {}, "Nothing changed by more than chance."));
    const gone = changed.filter((one) => one.isGone).slice(0, HOTTEST);
    if (gone.length > 0) parts.push(el("h2", {}, `Only in ${view.otherName}`));
    for (const { frame, size } of gone) {
      const row = this.row(view.name(frame), changeText(view, frame).text, size / most, frame);
      row.classList.add("less");
      parts.push(row);
    }
    return parts;
  }

  /**
   * What a thread did at a moment: for how long, and its stack, innermost function first.
   * @param {import("./moments.js").Stay & {tid: number}} stay
   */
  ofStay({ node, from, to, activity, tid }) {
    const { app, view } = this;
    const { nodeFrame, nodeParent, meta } = view.recording;
    const groups = view.groups("thread");
    const label = groups.labels[groups.keys.indexOf(tid)] ?? String(tid);
    const close = button("button.plain.close", "×", () => app.select(-1), { "aria-label": "Close" });
    close.dataset["key"] = "close";
    const [begin, end] = [from, to].map((at) => duration(at * meta.step));
    const isWait = activity === ACTIVITY.waiting || activity === ACTIVITY.idle;
    const wait = isWait ? waitAt(view.recording, tid, view.state.side, { from, to }) : null;
    const did = wait === null ? ACTIVITY_WORDS[activity] : `${ACTIVITY_WORDS[activity]}, ${wait.what}`;
    const range = { from: Math.floor(from), to: Math.min(Math.max(Math.ceil(to), Math.floor(from) + 1), view.steps) };
    const parts = [
      el("div.title", {}, el("h2", {}, `${clean(label, 60)}: ${clean(did, 80)}`), close),
      el("div.cards", {}, el("div.card", {}, el("strong", {}, duration((to - from) * meta.step)),
        el("span", {}, `from ${begin} to ${end}`))),
      ...(wait === null ? [] : this.wokenBy(wait)),
      el("div.actions", {}, button("button", "Only this time", () => app.range(range, true)),
        button("button", "Stack chart", () => app.tab("chart"))),
      el("h3", {}, "Its stack"),
    ];
    for (let at = node; at > 0; at = nodeParent[at]) {
      parts.push(this.row(view.name(nodeFrame[at]), "", 0, nodeFrame[at]));
    }
    return parts;
  }

  /**
   * Who ended a wait, when, and where it was then.
   * @param {import("./waits.js").Wait} wait
   */
  wokenBy({ from, woken, to, wokenBy, wakerStack }) {
    const { step } = this.view.recording.meta;
    if (wokenBy === "") return [];
    const late = to > woken ? `, and ran ${duration((to - woken) * step)} later` : "";
    const stack = wakerStack === "" ? [] : wakerStack.split("\n");
    return [el("h3", {}, "Woken by"),
      el("p.note", {}, `${clean(wokenBy, 120)}, after ${duration((woken - from) * step)}${late}`),
      ...stack.map((name) => el("div.item", {}, el("span.name", {}, clean(name, 120))))];
  }

  /** @param {number} frame */
  ofFunction(frame) {
    const { app, view, box } = this;
    const { sums } = view;
    const colour = css(this.palette.fills[view.fill(frame)]);
    const close = button("button.plain.close", "×", () => app.select(-1),
      { "aria-label": "Close" });
    close.dataset["key"] = "close";
    const parts = [
      el("div.title", {}, swatch(colour), el("h2.mono", {}, view.name(frame, SHOWN.tip)), close),
      el("p.note", {}, origin(view, frame)),
      el("div.cards", {},
        this.card("itself", sums.self[frame], sums.selfSamples[frame]),
        this.card("with callees", sums.total[frame], sums.samples[frame])),
    ];
    if (view.otherSums !== null) {
      const { a, b } = view.functionChange(frame);
      const { text, tone } = changeText(view, frame);
      parts.push(el("p.versus", {}, `with callees ${view.shareText(a)}, in ${view.otherName} ` +
        `${view.shareText(b)}: `, el(`span.${tone}`, {}, text)));
    }
    const actions = el("div.actions", {},
      button("button", "Only stacks through it", () => app.filter({ kind: "through", frame })),
      button("button", "Callers & callees", () => app.showCallers(frame)),
      button("button", "Copy name", () => copy(app, view.rawName(frame))));
    if (box?.frame === frame) actions.prepend(button("button", "Zoom", () => app.zoomTo(box)));
    for (const [i, one] of [...actions.children].entries()) {
      if (one instanceof HTMLElement) one.dataset["key"] = `act${i}`;
    }
    parts.push(actions, ...this.relatives(frame, "up"), ...this.relatives(frame, "down"));
    parts.push(...this.instructions(frame));
    return parts;
  }

  /**
   * @param {string} title
   * @param {number} weight
   * @param {number} samples
   */
  card(title, weight, samples) {
    const { view } = this;
    const { unit } = view.event.meta;
    const count = `${thousands(samples)} samples`;
    return el("div.card", {},
      el("strong", {}, shareOf(weight, view.a.all)),
      el("span", {}, title),
      el("small", {}, unit === "samples" ? count : `${view.amount(weight)} · ${count}`));
  }

  /**
   * Makes the list of callers or callees.
   * @param {number} frame
   * @param {"up" | "down"} direction
   */
  relatives(frame, direction) {
    const { view } = this;
    const merge = view.through(frame, direction);
    const all = merge.weigh(merge.root, view.a);
    if (!(all > 0)) return [];
    /** @type {{frame: number, weight: number, name: string}[]} */
    const boxes = merge.childrenOf(merge.root)
      .map((box) => (
        { frame: box.frame, weight: merge.weigh(box, view.a), name: view.name(box.frame) }))
      .filter((one) => one.weight > 0);
    let rest = all;
    for (const one of boxes) rest -= one.weight;
    // Callees leave the function's own time; callers leave stacks that begin here.
    if (rest > all * 1e-9) {
      const name = direction === "down" ? "itself" : "no known caller";
      boxes.push({ frame: -1, weight: rest, name });
    }
    boxes.sort((a, b) => b.weight - a.weight || a.frame - b.frame);
    const parts = [el("h3", {}, direction === "up" ? "Called by" : "Calls")];
    for (const one of boxes.slice(0, RELATIVES)) {
      parts.push(this.row(one.name, shareOf(one.weight, all), one.weight / all, one.frame));
    }
    const others = boxes.slice(RELATIVES);
    if (others.length > 0) {
      let weight = 0;
      for (const one of others) weight += one.weight;
      const name = `${thousands(others.length)} other${others.length === 1 ? "" : "s"}`;
      parts.push(this.row(name, shareOf(weight, all), weight / all, -1));
    }
    return parts;
  }

  /**
   * Makes the list of instructions, if the page has them. They are of the whole recording.
   * @param {number} frame
   */
  instructions(frame) {
    const { view } = this;
    const code = view.recording.code.find(
      (one) => one.frame === frame && one.event === view.event.index);
    if (code === undefined) return [];
    let all = 0;
    let most = 0;
    for (const row of code.rows) {
      all += row.samples;
      most = Math.max(most, row.samples);
    }
    const first = firstShown(code.rows);
    const parts = [el("h3", {}, view.state.filters.length > 0
      ? "Instructions (of the whole recording)" : "Instructions")];
    const list = el("div.code", { tabindex: "0", role: "region", "aria-label": "Instructions" });
    const last = Math.min(code.rows.length, first + INSTRUCTIONS);
    /** @type {Set<number>} */
    const targets = new Set();
    for (const row of code.rows) if (row.jump !== undefined) targets.add(row.jump);
    if (first > 0) list.append(el("div.source", {}, `${thousands(first)} instructions before`));
    for (let i = first; i < last; i++) {
      const row = code.rows[i];
      if (row === undefined) continue;
      const place = [row.function, row.source].filter(Boolean).join(" · ");
      if (place !== "") list.append(el("div.source", {}, clean(place, 200)));
      const jump = row.jump === undefined ? "" : row.jump < i ? " ↑" : " ↓";
      list.append(el("div.line", {}, setBar(el("span.bar"), row.samples / most),
        el("span.figure", {}, row.samples > 0 ? percent(row.samples / all) : ""),
        el("span.address", {}, (targets.has(i) ? "→" : " ") + clean(row.address, 40)),
        el("span.text", {}, clean(row.text, 200) + jump)));
    }
    if (last < code.rows.length) {
      list.append(el("div.source", {}, `${digits(code.rows.length - last)} instructions after`));
    }
    parts.push(list);
    return parts;
  }
}

/**
 * Returns the first row shown of a long function: some before the hottest.
 * @param {{samples: number}[]} rows
 */
function firstShown(rows) {
  if (rows.length <= INSTRUCTIONS) return 0;
  let hottest = 0;
  rows.forEach((row, i) => {
    if (row.samples > (rows[hottest]?.samples ?? 0)) hottest = i;
  });
  return Math.max(0, Math.min(hottest - INSTRUCTIONS / 4, rows.length - INSTRUCTIONS));
}
