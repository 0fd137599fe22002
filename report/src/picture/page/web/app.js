// The page: opens the recording, keeps the state, and tells every part what changed.

import { palette } from "./colours.js";
import { blocksOfDocument, DamagedPage } from "./decode.js";
import { byId, canvasOf, el, setText } from "./dom.js";
import { clean, SHOWN } from "./names.js";
import { Recording } from "./model.js";
import { formatState, parseState, State, TABS } from "./state.js";
import { View } from "./view.js";
import { Flame } from "./flame.js";
import { Timeline } from "./timeline.js";
import { Table } from "./table.js";
import { origin, Panel } from "./panel.js";
import { fillRecording } from "./recording.js";
import { figuresText, fillControls, fillFilters, fillHeader, fillLegend, fillSearch, fillWarnings } from "./bar.js";
import { numbersOf } from "./numbers.js";

/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./merge.js").Merge} Merge */
/** @typedef {import("./state.js").Filter} Filter */
/** @typedef {import("./state.js").Tab} Tab */

/**
 * What has to be done after a change. `measure`: totals; `series`: courses over time; `overlay`:
 * course of the search or the selection; `push`: a step for the browser's Back.
 * @typedef {{measure?: boolean, series?: boolean, overlay?: boolean, push?: boolean}} Needs
 */

/** Delay before the address is written: browsers refuse hundreds of writes a minute. */
const ADDRESS_DELAY = 200;

class App {
  /**
   * @param {Recording} recording
   * @param {State} state
   * @param {import("./model.js").EventData} event
   */
  constructor(recording, state, event) {
    this.recording = recording;
    this.palette = palette(isDark());
    this.view = new View(recording, state, event);
    this.view.search();
    this.written = location.hash.slice(1);
    /** @type {Needs} */
    this.needs = {};
    this.frame = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.addressTimer = undefined;
    this.pushes = false;
    this.timeline = new Timeline(this.view, this.palette, {
      onRange: (range, isDone) => this.range(range, isDone),
      onLane: (key) => this.lane(key),
      onStatus: (text) => this.status(text),
    });
    this.flame = this.graph("flame", (path) => this.change((s) => (s.zoom = path), { push: true }));
    /** Zoom of the graphs of callers and callees. @type {{up: number[], down: number[]}} */
    this.zooms = { up: [], down: [] };
    this.callers = this.graph("callers", (path) => this.zoomPart("up", path));
    this.callees = this.graph("callees", (path) => this.zoomPart("down", path));
    this.table = new Table(this.view, this.palette, {
      onSelect: (frame) => this.select(frame),
      onSort: (key) => this.change((s) => (s.sort = key), {}),
      onStatus: (text) => this.status(text),
    });
    this.panel = new Panel(this.view, this.palette, {
      onSelect: (frame) => this.select(frame),
      onThrough: (frame) => this.filter({ kind: "through", frame }),
      onCallers: (frame) => this.showCallers(frame),
      onZoom: () => this.zoomToBox(),
      onStatus: (text) => this.status(text),
    });
    this.listen();
  }

  /** @returns {State} */
  get state() {
    return this.view.state;
  }

  /**
   * @param {string} id
   * @param {(path: number[]) => void} onZoom
   */
  graph(id, onZoom) {
    return new Flame(byId(id + "-scroller"), canvasOf(id + "-canvas"), byId(id + "-spacer"),
      this.view, this.palette, {
        onHover: (box, merge, x, y) => this.hover(box, merge, x, y),
        onCursor: (box, merge) => this.status(this.boxText(box, merge)),
        onSelect: (box) => this.selectBox(box),
        onZoom,
      });
  }

  /** Adds what listens to the page's own controls. */
  listen() {
    const search = this.searchField;
    search.addEventListener("input", () => this.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch();
    });
    byId("only").addEventListener("click", () => {
      const text = this.state.search;
      this.filter({ kind: "only", text });
    });
    byId("scheme").addEventListener("click", () => this.switchScheme());
    byId("help-button").addEventListener("click", () => this.help());
    byId("more").addEventListener("click", () => {
      this.timeline.more();
      this.change(() => {}, {});
    });
    byId("inverted").addEventListener("click", () => this.invert());
    byId("idle").addEventListener("click", () => {
      const idle = this.state.filter("idle");
      if (idle === null) this.filter({ kind: "idle" });
      else this.removeFilter(idle);
    });
    this.onChoice("lanes-by", (value) => this.change((s) => (s.lanes = value), { series: true }));
    this.onChoice("graph-by", (value) => this.change((s) => {
      s.by = value;
      s.zoom = [];
    }, { measure: true, push: true }));
    this.onChoice("event", (value) => this.switchEvent(Number(value)));
    for (const tab of TABS) {
      byId("tab-" + tab).addEventListener("click", () => this.tab(tab));
      byId("tab-" + tab).addEventListener("keydown", (event) => this.tabKey(event, tab));
    }
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.change(() => {}, {}));
    addEventListener("popstate", () => this.readAddress());
    addEventListener("hashchange", () => this.readAddress());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  get searchField() {
    return /** @type {HTMLInputElement} */ (byId("search"));
  }

  /**
   * @param {string} id
   * @param {(value: any) => void} act
   */
  onChoice(id, act) {
    const select = /** @type {HTMLSelectElement} */ (byId(id));
    select.addEventListener("change", () => act(select.value));
  }

  /**
   * Changes the state, and shows it with the next frame of the screen.
   * @param {(state: State) => void} act
   * @param {Needs} needs
   */
  change(act, needs) {
    act(this.state);
    this.need(needs);
    this.pushes ||= needs.push === true;
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => this.writeAddress(), ADDRESS_DELAY);
  }

  /** @param {Needs} needs */
  need(needs) {
    this.needs.measure ||= needs.measure === true;
    this.needs.series ||= needs.series === true;
    this.needs.overlay ||= needs.overlay === true;
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => this.render());
    }
  }

  /** Does what has to be done, and draws. */
  render() {
    const { view, needs, state, timeline } = this;
    if (this.frame !== 0) cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.needs = {};
    if (needs.measure) view.refresh();
    if (needs.series) timeline.refresh();
    else if (needs.overlay) timeline.refreshOverlay();
    fillHeader(view);
    fillSearch(view);
    fillControls(view, timeline.lanesLeft, timeline.lanesShown);
    fillFilters(view, {
      onRemove: (filter) => this.removeFilter(filter),
      onCompare: () => this.change((s) => (s.compare = !s.compare), { measure: true, push: true }),
      onClear: () => this.change((s) => {
        s.filters = [];
        s.compare = false;
      }, { measure: true, series: true, push: true }),
      onRate: () => this.change((s) => (s.perSecond = !s.perSecond), {}),
      onSide: () => this.change((s) => (s.side = 1 - s.side), { measure: true, series: true, push: true }),
    });
    for (const tab of TABS) {
      const isShown = tab === state.tab;
      byId("view-" + tab).hidden = !isShown;
      byId("tab-" + tab).setAttribute("aria-selected", String(isShown));
      byId("tab-" + tab).tabIndex = isShown ? 0 : -1;
    }
    fillLegend(view, this.palette);
    timeline.draw();
    this.panel.refresh();
    this.drawTab();
  }

  drawTab() {
    const { view, state } = this;
    if (state.tab === "flame") this.flame.show(view.graph, state.zoom);
    else if (state.tab === "functions") this.table.refresh();
    else if (state.tab === "recording") fillRecording(view, (text) => this.status(text));
    else {
      const isChosen = state.selected >= 0;
      byId("callers-none").hidden = isChosen;
      byId("callers-parts").hidden = !isChosen;
      if (!isChosen) return;
      setText(byId("callers-title"), `Callers of ${view.name(state.selected, 100)}`);
      setText(byId("callees-title"), `Callees of ${view.name(state.selected, 100)}`);
      this.callers.show(view.through(state.selected, "up"), this.zooms.up);
      this.callees.show(view.through(state.selected, "down"), this.zooms.down);
    }
  }

  /**
   * @param {{from: number, to: number} | null} range
   * @param {boolean} isDone
   */
  range(range, isDone) {
    const old = this.state.time();
    if (range === null && old === null) return;
    this.change((s) => {
      if (range !== null) s.add({ kind: "time", ...range });
      else if (old !== null) s.remove(old);
    }, { measure: true, push: isDone });
  }

  /** @param {number} key */
  lane(key) {
    const { lanes } = this.state;
    const old = this.state.lane();
    if (old !== null && old.lane === lanes && old.key === key) this.removeFilter(old);
    else this.filter({ kind: "lane", lane: lanes, key });
  }

  /** @param {Filter} filter */
  filter(filter) {
    this.change((s) => s.add(filter), { measure: true, series: true, push: true });
  }

  /** @param {Filter} filter */
  removeFilter(filter) {
    this.change((s) => s.remove(filter), { measure: true, series: true, push: true });
  }

  /** @param {number} frame */
  select(frame) {
    this.panel.box = null;
    this.zooms = { up: [], down: [] };
    this.change((s) => (s.selected = frame), { overlay: true, push: true });
    if (frame >= 0) this.status(`${this.view.name(frame)} · ${origin(this.view, frame)}`);
  }

  /** @param {Box} box */
  selectBox(box) {
    const { names } = this.recording.meta;
    if (box.frame >= 0 && box.frame < names) {
      this.select(box.frame);
      this.panel.box = this.state.tab === "flame" ? box : null;
    } else if (box.frame >= names) {
      const by = this.state.by === "none" ? "command" : this.state.by;
      const label = this.view.groups(by).labels[box.frame - names] ?? "";
      this.status(`${clean(label, 80)}: double-click or Enter zooms`);
    } else this.change((s) => (s.zoom = []), { push: true });
  }

  zoomToBox() {
    const { box } = this.panel;
    if (box === null) return;
    /** @type {number[]} */
    const path = [];
    for (let at = box; at.parent !== null; at = at.parent) path.unshift(at.frame);
    this.change((s) => (s.zoom = path), { push: true });
  }

  /**
   * @param {"up" | "down"} direction
   * @param {number[]} path
   */
  zoomPart(direction, path) {
    this.zooms[direction] = path;
    this.drawTab();
  }

  /** @param {number} frame */
  showCallers(frame) {
    if (frame < 0 || frame >= this.recording.meta.names) return;
    this.zooms = { up: [], down: [] };
    this.change((s) => {
      s.selected = frame;
      s.tab = "callers";
    }, { overlay: true, push: true });
  }

  /** @param {Tab} tab */
  tab(tab) {
    this.change((s) => (s.tab = tab), { push: true });
  }

  invert() {
    this.change((s) => {
      s.inverted = !s.inverted;
      s.zoom = [];
      s.tab = "flame";
    }, { push: true });
  }

  /** @param {string} text */
  search(text) {
    this.change((s) => {
      s.search = text;
      s.typed = true;
      this.view.search();
    }, { overlay: true });
  }

  nextMatch() {
    const { state, flame, view } = this;
    if (view.matches === 0) return;
    if (state.tab !== "flame") this.tab("functions");
    else if (!flame.nextMatch()) this.status("No match is wide enough to be seen: try “Only these”.");
  }

  /** @param {number} index */
  async switchEvent(index) {
    this.status("Reading the event…");
    try {
      const event = await this.recording.event(index);
      this.state.event = index;
      this.view.useEvent(event);
      this.change((s) => (s.zoom = []), { measure: true, series: true, push: true });
      this.status("");
    } catch (error) {
      showFailure(error);
    }
  }

  /** Writes the state into the address bar. */
  writeAddress() {
    const text = formatState(this.state);
    const pushes = this.pushes;
    this.pushes = false;
    if (text === this.written) return;
    this.written = text;
    try {
      if (pushes) history.pushState(null, "", "#" + text);
      else history.replaceState(null, "", "#" + text);
    } catch {
      location.hash = text;
    }
  }

  /** Takes the state from the address bar: Back, Forward, or typed. */
  async readAddress() {
    const text = location.hash.slice(1);
    if (text === this.written) return;
    clearTimeout(this.addressTimer);
    this.written = text;
    const state = parseState(text, limitsOf(this.recording));
    try {
      this.view.useEvent(await this.recording.event(state.event));
    } catch (error) {
      showFailure(error);
      return;
    }
    this.view.state = state;
    this.view.search();
    this.searchField.value = state.search;
    this.need({ measure: true, series: true });
  }

  /**
   * Returns a box in words.
   * @param {Box} box
   * @param {Merge} merge
   */
  boxText(box, merge) {
    const { view } = this;
    const figures = figuresText(view, merge.figures(box, view.a));
    const of = box.frame < 0 ? "" : origin(view, box.frame);
    return [view.name(box.frame, SHOWN.tip), of, figures].filter(Boolean).join(" · ");
  }

  /**
   * Shows the tip beside the mouse.
   * @param {Box | null} box
   * @param {Merge} merge
   * @param {number} x
   * @param {number} y
   */
  hover(box, merge, x, y) {
    const tip = byId("tip");
    tip.hidden = box === null;
    if (box === null) {
      this.status("");
      return;
    }
    const { view } = this;
    const lines = [el("strong", {}, view.name(box.frame, SHOWN.tip))];
    const of = box.frame < 0 ? "" : origin(view, box.frame);
    if (of !== "") lines.push(el("span", {}, of));
    lines.push(el("span", {}, figuresText(view, merge.figures(box, view.a))));
    if (view.b !== null) {
      const { a, b, change } = view.compareFigures(merge.figures(box, view.a), merge.figures(box, view.b));
      const mark = change === 0 ? "no more than chance" : change > 0 ? "▲ more" : "▼ less";
      lines.push(el("span", {}, `${view.shareText(a)}, in ${view.otherName} ${view.shareText(b)}: ${mark}`));
    }
    tip.replaceChildren(...lines);
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
    this.status(this.boxText(box, merge));
  }

  /** @param {string} text */
  status(text) {
    setText(byId("status"), text);
  }

  switchScheme() {
    document.documentElement.dataset["scheme"] = isDark() ? "light" : "dark";
    this.recolour();
  }

  recolour() {
    Object.assign(this.palette, palette(isDark()));
    this.timeline.isStale = true;
    this.need({});
  }

  help() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Tab} tab
   */
  tabKey(event, tab) {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length] ?? tab;
    this.tab(next);
    byId("tab-" + next).focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inField = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape") {
      this.escape(inField);
      return;
    }
    if (inField || /** @type {HTMLDialogElement} */ (byId("help")).open) return;
    const tab = TABS[Number(event.key) - 1];
    if (event.key === "/") this.searchField.focus();
    else if (event.key === "n") this.nextMatch();
    else if (event.key === "c") this.showCallers(this.flame.cursor?.frame ?? this.state.selected);
    else if (event.key === "i") this.invert();
    else if (event.key === "?") this.help();
    else if (tab !== undefined) this.tab(tab);
    else return;
    event.preventDefault();
  }

  /**
   * Takes back the latest.
   * @param {boolean} inField
   */
  escape(inField) {
    const { state } = this;
    const last = state.filters[state.filters.length - 1];
    if (/** @type {HTMLDialogElement} */ (byId("help")).open) return;
    if (inField) {
      this.searchField.blur();
      if (state.search === "") return;
    }
    if (inField || (state.search !== "" && last === undefined)) {
      this.searchField.value = "";
      this.search("");
    } else if (state.compare) {
      this.change((s) => (s.compare = false), { measure: true, push: true });
    } else if (last !== undefined) this.removeFilter(last);
    else if (state.zoom.length > 0) this.change((s) => (s.zoom = []), { push: true });
    else if (state.selected >= 0) this.select(-1);
  }
}

/** Whether colours are dark: the button's choice, else the system's. */
function isDark() {
  const chosen = document.documentElement.dataset["scheme"];
  return chosen === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
}

/**
 * @param {Recording} recording
 * @returns {import("./state.js").Limits}
 */
function limitsOf({ meta }) {
  return {
    events: meta.events.length, sides: meta.sides.length, steps: meta.steps, names: meta.names,
    groups: Math.max(meta.commands, meta.threads, meta.cpus + 1),
  };
}

/**
 * Shows a sentence instead of a blank page.
 * @param {unknown} error
 */
function showFailure(error) {
  const why = error instanceof DamagedPage ? error.message
    : error instanceof Error ? error.message : String(error);
  const place = byId("opening");
  place.hidden = false;
  place.replaceChildren(el("strong", {}, "This page cannot be shown: "), clean(why, 300),
    ". Make it again with rep html, or open it in a newer browser.");
  byId("page").hidden = true;
}

/** Fills the choices that depend on the recording. @param {Recording} recording */
function fillChoices(recording) {
  const event = byId("event");
  recording.meta.events.forEach((one, i) => {
    event.append(el("option", { value: String(i) }, clean(one.name, 60)));
  });
  byId("event-choice").hidden = recording.meta.events.length < 2;
  if (recording.meta.cpus === 0) {
    for (const one of document.querySelectorAll("option[value=cpu]")) one.remove();
  }
}

/** Opens the page. */
async function start() {
  try {
    const recording = await Recording.open(blocksOfDocument());
    if (recording.meta.events.length === 0) throw new DamagedPage("the recording has no samples");
    const state = parseState(location.hash.slice(1), limitsOf(recording));
    const event = await recording.event(state.event);
    byId("page").hidden = false;
    byId("opening").hidden = true;
    fillChoices(recording);
    const app = new App(recording, state, event);
    app.searchField.value = state.search;
    fillWarnings(app.view, () => app.tab("recording"));
    app.need({ series: true });
    app.render();
    Object.defineProperty(globalThis, "recrep", { value: numbersOf(app.view, (act) =>
      app.change(act, { measure: true, series: true })) });
    document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
  } catch (error) {
    showFailure(error);
  }
}

start();
