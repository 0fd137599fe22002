// The page: keeps the state, and tells every part what changed. Parts call its methods back.

import { palette } from "./colours.js";
import { byId, canvasOf, setText } from "./dom.js";
import { parseState, TABS } from "./state.js";
import { View } from "./view.js";
import { Flame } from "./flame.js";
import { Timeline } from "./timeline.js";
import { StackChart } from "./chart.js";
import { Table } from "./table.js";
import { Panel } from "./panel.js";
import { fillRecording } from "./recording.js";
import { fillControls, fillFilters, fillHeader, fillLegend, fillSearch, fillVerdict } from "./bar.js";
import { boxLines, origin, showTip } from "./tip.js";
import { pathOf } from "./layout.js";
import { stayAt, staysOf } from "./moments.js";
import { Address } from "./address.js";
import { pageKey, tabKey, toggleHelp } from "./keys.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Filter} Filter */
/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./merge.js").Merge} Merge */

/**
 * What has to be done after a change. `measure`: totals; `series`: courses over time; `overlay`:
 * course of the search or the selection; `push`: a step for the browser's Back.
 * @typedef {{measure?: boolean, series?: boolean, overlay?: boolean, push?: boolean}} Needs
 */

/** Needs of a filter that comes or goes. */
const FILTERED = { measure: true, series: true, push: true };

/** All parts of the page around one view. */
export class App {
  /**
   * @param {View} view
   * @param {import("./state.js").Limits} limits
   * @param {(error: unknown) => void} onFailure
   */
  constructor(view, limits, onFailure) {
    this.view = view;
    this.limits = limits;
    this.onFailure = onFailure;
    this.palette = palette(isDark());
    /** @type {Needs} */
    this.needs = { series: true };
    this.frame = 0;
    this.address = new Address((text) => this.show(parseState(text, limits)));
    this.timeline = new Timeline(this);
    this.flame = this.graph("flame", (path) => this.zoom(path));
    /** Zoom of the graphs of callers and callees. @type {{up: number[], down: number[]}} */
    this.zooms = { up: [], down: [] };
    this.callers = this.graph("callers", (path) => this.zoomPart("up", path));
    this.callees = this.graph("callees", (path) => this.zoomPart("down", path));
    this.chart = new StackChart(this);
    this.table = new Table(this);
    this.panel = new Panel(this);
    this.listen();
  }

  get state() {
    return this.view.state;
  }

  get searchField() {
    return /** @type {HTMLInputElement} */ (byId("search"));
  }

  /**
   * @param {string} id
   * @param {(path: number[]) => void} onZoom
   */
  graph(id, onZoom) {
    const canvas = canvasOf(id + "-canvas");
    return new Flame(this, byId(id + "-scroller"), canvas, byId(id + "-spacer"), onZoom);
  }

  /** Listens to the page's own controls. */
  listen() {
    /** @param {string} id @param {() => void} act */
    const click = (id, act) => byId(id).addEventListener("click", act);
    click("only", () => {
      const { search, typed } = this.state;
      this.filter({ kind: "only", text: search, typed });
    });
    click("scheme", () => {
      document.documentElement.dataset["scheme"] = isDark() ? "light" : "dark";
      this.recolour();
    });
    click("help-button", toggleHelp);
    click("more", () => this.change(() => this.timeline.more(), {}));
    click("zoom-out", () => this.zoomTime(false));
    click("inverted", () => this.invert());
    click("idle", () => {
      const idle = this.state.filter("idle");
      if (idle === null) this.filter({ kind: "idle" });
      else this.removeFilter(idle);
    });
    for (const tab of TABS) {
      click("tab-" + tab, () => this.tab(tab));
      byId("tab-" + tab).addEventListener("keydown", (event) => tabKey(this, event));
    }
    /** @param {string} id @param {(value: any) => void} act */
    const choice = (id, act) => byId(id).addEventListener("change", (event) =>
      act(/** @type {HTMLSelectElement} */ (event.target).value));
    choice("lanes-by", (value) => this.change((s) => (s.lanes = value), { series: true }));
    choice("graph-by", (value) => this.change((s) => {
      s.by = value;
      s.zoom = [];
    }, { measure: true, push: true }));
    choice("event", (value) => this.switchEvent(Number(value)));
    byId("time-choice").addEventListener("click", (event) => {
      const index = event.target instanceof HTMLElement ? event.target.dataset["event"] : undefined;
      if (index !== undefined) this.switchEvent(Number(index));
    });
    this.searchField.addEventListener("input", () => this.search(this.searchField.value));
    this.searchField.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch();
    });
    document.addEventListener("keydown", (event) => pageKey(this, event));
    addEventListener("resize", () => this.need({}));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  /**
   * Changes the state, and shows it with the next frame of the screen.
   * @param {(state: State) => void} act
   * @param {Needs} needs
   */
  change(act, needs) {
    act(this.state);
    this.need(needs);
    this.address.write(this.state, needs.push === true);
  }

  /** @param {Needs} needs */
  need(needs) {
    this.needs.measure ||= needs.measure;
    this.needs.series ||= needs.series;
    this.needs.overlay ||= needs.overlay;
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.render());
  }

  /** Does what has to be done, and draws. */
  render() {
    const { view, needs, state, timeline } = this;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.needs = {};
    if (needs.measure) view.refresh();
    if (needs.series) timeline.refresh();
    else if (needs.overlay) timeline.refreshOverlay();
    fillHeader(view);
    fillVerdict(view);
    fillSearch(view);
    fillControls(view, timeline);
    fillFilters(this);
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
    else if (state.tab === "recording") fillRecording(this);
    else if (state.tab === "chart") this.chart.show();
    else {
      const frame = state.selected >= 0 ? state.selected : view.hottest(1)[0] ?? -1;
      byId("callers-none").hidden = frame >= 0;
      byId("callers-parts").hidden = frame < 0;
      if (frame < 0) return;
      const name = view.name(frame, 100) + (state.selected < 0 ? " (the hottest function)" : "");
      setText(byId("callers-title"), `Callers of ${name}`);
      setText(byId("callees-title"), `Callees of ${view.name(frame, 100)}`);
      this.callers.show(view.through(frame, "up"), this.zooms.up);
      this.callees.show(view.through(frame, "down"), this.zooms.down);
    }
  }

  /**
   * Chooses a range of time, or all of it.
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

  /**
   * Shows the chosen range of time over the whole width of the timeline, or all of it.
   * @param {boolean} isIn
   */
  zoomTime(isIn) {
    const time = this.state.time();
    const { window } = this.state;
    if (isIn ? time === null : window === null) return;
    this.change((s) => (s.window = isIn && time !== null ? { from: time.from, to: time.to } : null),
      { push: true });
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
    this.change((s) => s.add(filter), FILTERED);
  }

  /** @param {Filter} filter */
  removeFilter(filter) {
    this.change((s) => s.remove(filter), FILTERED);
  }

  clear() {
    this.change((s) => {
      s.filters = [];
      s.compare = false;
    }, FILTERED);
  }

  compare() {
    this.change((s) => (s.compare = !s.compare), { measure: true, push: true });
  }

  swapSides() {
    this.change((s) => (s.side = 1 - s.side), FILTERED);
  }

  /**
   * Shows what a thread did at a moment.
   * @param {number} tid
   * @param {number} step
   * @returns {boolean} Whether that is known.
   */
  showStay(tid, step) {
    const { view, state } = this;
    const stay = stayAt(staysOf(view.recording, view.event, tid, state.side), step);
    if (stay === null) return false;
    this.panel.stay = { ...stay, tid };
    this.change((s) => {
      s.selected = -1;
      s.thread = tid;
    }, { overlay: true, push: true });
    return true;
  }

  /** @param {number} frame −1: nothing. */
  select(frame) {
    this.panel.stay = null;
    this.panel.box = null;
    this.zooms = { up: [], down: [] };
    this.change((s) => (s.selected = frame), { overlay: true, push: true });
    if (frame >= 0) this.status(`${this.view.name(frame)} · ${origin(this.view, frame)}`);
  }

  /** @param {Box} box */
  selectBox(box) {
    if (box.frame < 0) this.zoom([]);
    else if (box.frame >= this.limits.names) {
      this.status(`${this.view.name(box.frame, 80)}: double-click or Enter zooms`);
    } else {
      this.select(box.frame);
      this.panel.box = this.state.tab === "flame" ? box : null;
    }
  }

  /** @param {number[]} path Frames from the top to a box. */
  zoom(path) {
    this.change((s) => (s.zoom = path), { push: true });
  }

  /** @param {Box} box */
  zoomTo(box) {
    this.zoom(pathOf(box));
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
    if (frame < 0 || frame >= this.limits.names) return;
    this.select(frame);
    this.tab("callers");
  }

  /** @param {import("./state.js").Tab} tab */
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
    if (this.view.matches === 0) return;
    if (this.state.tab !== "flame") this.tab("functions");
    else if (!this.flame.nextMatch()) {
      this.status("No match is wide enough to be seen: try “Only these”.");
    }
  }

  /** @param {number} index */
  async switchEvent(index) {
    try {
      this.view.useEvent(await this.view.recording.event(index));
    } catch (error) {
      this.onFailure(error);
      return;
    }
    this.panel.stay = null;
    this.change((s) => {
      s.event = index;
      s.zoom = [];
    }, FILTERED);
  }

  /**
   * Shows another state, of the address bar.
   * @param {State} state
   */
  async show(state) {
    const { view } = this;
    try {
      view.useEvent(await view.recording.event(state.event));
    } catch (error) {
      this.onFailure(error);
      return;
    }
    view.state = state;
    view.search();
    this.searchField.value = state.search;
    this.need({ measure: true, series: true });
  }

  /**
   * Says what the mouse or the keyboard is on.
   * @param {Box | null} box
   * @param {Merge} merge
   * @param {{x: number, y: number} | null} mouse
   */
  point(box, merge, mouse) {
    const lines = box === null ? [] : boxLines(this.view, box, merge);
    showTip(mouse === null ? [] : lines, mouse?.x ?? 0, mouse?.y ?? 0);
    this.status(lines.join(" · "));
  }

  /** @param {string} text */
  status(text) {
    setText(byId("status"), text);
  }

  recolour() {
    Object.assign(this.palette, palette(isDark()));
    this.timeline.isStale = true;
    this.need({});
  }
}

/** Whether colours are dark: the button's choice, else the system's. */
function isDark() {
  const chosen = document.documentElement.dataset["scheme"];
  if (chosen !== undefined) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
