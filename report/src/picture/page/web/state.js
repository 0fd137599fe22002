// What the user looks at, in the address bar: read like a file, numbers in range or ignored.

import { GROUP_KINDS } from "./group.js";

/** @typedef {import("./group.js").GroupKind} GroupKind */
/** @typedef {{kind: "time", from: number, to: number}} TimeFilter Steps, `to` is not in it. */
/** @typedef {{kind: "lane", lane: GroupKind, key: number}} LaneFilter */
/** @typedef {{kind: "through", frame: number}} ThroughFilter */
/** @typedef {{kind: "only", text: string, typed?: boolean}} OnlyFilter `typed`: not from the address. */
/** @typedef {{kind: "idle"}} IdleFilter */
/** @typedef {TimeFilter | LaneFilter | ThroughFilter | OnlyFilter | IdleFilter} Filter */
/** @typedef {"flame" | "functions" | "callers" | "recording" | "chart"} Tab */
/** @typedef {"self" | "total" | "change" | "name" | "module"} SortKey */

/** @type {Tab[]} */
export const TABS = ["flame", "functions", "callers", "recording", "chart"];
/** @type {SortKey[]} */
const SORT_KEYS = ["self", "total", "change", "name", "module"];
/** Deepest zoom that the address holds. */
const LONGEST_ZOOM = 300;
const LONGEST_TEXT = 500;
const MOST_FILTERS = 12;

/** Everything that decides what is shown. */
export class State {
  constructor() {
    this.event = 0;
    this.side = 0;
    /** @type {Tab} */
    this.tab = "flame";
    /** @type {GroupKind} */
    this.lanes = "command";
    /** @type {GroupKind | "none"} */
    this.by = "command";
    this.inverted = false;
    /** Thread of the stack chart; −1: the heaviest one. */
    this.thread = -1;
    /** Steps that the timeline shows; null: all. @type {{from: number, to: number} | null} */
    this.window = null;
    /** Filters, latest last. @type {Filter[]} */
    this.filters = [];
    this.compare = false;
    this.perSecond = false;
    this.search = "";
    /** Whether the search was typed: only then is `/…/` a regular expression. */
    this.typed = false;
    this.selected = -1;
    /** @type {SortKey} */
    this.sort = "self";
    /** Frames from the top to the zoomed box. @type {number[]} */
    this.zoom = [];
  }

  /**
   * @template {Filter["kind"]} K
   * @param {K} kind
   * @returns {Extract<Filter, {kind: K}> | null}
   */
  filter(kind) {
    const found = this.filters.find((filter) => filter.kind === kind);
    return found === undefined ? null : /** @type {Extract<Filter, {kind: K}>} */ (found);
  }

  time() {
    return this.filter("time");
  }

  lane() {
    return this.filter("lane");
  }

  hidesIdle() {
    return this.filter("idle") !== null;
  }

  /**
   * Adds a filter in the place of the one of its kind; functions add up.
   * @param {Filter} filter
   */
  add(filter) {
    const place = this.filters.findIndex((other) =>
      filter.kind === "through" && other.kind === "through"
        ? other.frame === filter.frame
        : filter.kind === other.kind);
    if (place >= 0) this.filters[place] = filter;
    else if (this.filters.length < MOST_FILTERS) this.filters.push(filter);
  }

  /** @param {Filter} filter */
  remove(filter) {
    this.filters = this.filters.filter((other) => other !== filter);
    if (this.time() === null && this.lane() === null) this.compare = false;
  }
}

/**
 * Limits of what a state may hold.
 * @typedef {object} Limits
 * @property {number} events
 * @property {number} sides
 * @property {number} steps
 * @property {number} names
 * @property {number} groups Number of groups that the graph may have as its first level.
 */

/**
 * Returns a state as the address holds it, without what is the default.
 * @param {State} state
 * @returns {string}
 */
export function formatState(state) {
  const standard = new State();
  /** @type {string[]} */
  const out = [];
  /** @param {string} key @param {string | number} value */
  const put = (key, value) => out.push(`${key}=${encodeURIComponent(String(value).toWellFormed())}`);
  if (state.event !== standard.event) put("event", state.event);
  if (state.side !== standard.side) put("side", state.side);
  if (state.tab !== standard.tab) put("tab", state.tab);
  if (state.lanes !== standard.lanes) put("lanes", state.lanes);
  if (state.by !== standard.by) put("by", state.by);
  if (state.inverted) put("inverted", 1);
  for (const filter of state.filters) {
    if (filter.kind === "time") put("time", `${filter.from}-${filter.to}`);
    else if (filter.kind === "lane") put("lane", `${filter.lane}:${filter.key}`);
    else if (filter.kind === "through") put("through", filter.frame);
    else if (filter.kind === "only") put("only", filter.text);
    else put("idle", 0);
  }
  if (state.thread >= 0) put("thread", state.thread);
  if (state.window !== null) put("window", `${state.window.from}-${state.window.to}`);
  if (state.compare) put("compare", 1);
  if (state.perSecond) put("rate", 1);
  if (state.search !== "") put("search", state.search);
  if (state.selected >= 0) put("f", state.selected);
  if (state.sort !== standard.sort) put("sort", state.sort);
  if (state.zoom.length > 0 && state.zoom.length <= LONGEST_ZOOM) put("zoom", state.zoom.join("."));
  return out.join("&");
}

/**
 * Returns the state that an address asks for. Whatever does not fit is ignored.
 * @param {string} text What follows the `#`.
 * @param {Limits} limits
 * @returns {State}
 */
export function parseState(text, limits) {
  const state = new State();
  for (const pair of text.slice(0, 20_000).split("&").slice(0, 64)) {
    const cut = pair.indexOf("=");
    if (cut < 0) continue;
    try {
      take(state, pair.slice(0, cut), decodeURIComponent(pair.slice(cut + 1)), limits);
    } catch {
      // Not URI encoding: ignored.
    }
  }
  if (state.time() === null && state.lane() === null) state.compare = false;
  return state;
}

/**
 * @param {State} state
 * @param {string} key
 * @param {string} value
 * @param {Limits} limits
 */
function take(state, key, value, limits) {
  if (key === "event") state.event = whole(value, limits.events) ?? state.event;
  else if (key === "side") state.side = whole(value, limits.sides) ?? state.side;
  else if (key === "tab") state.tab = oneOf(TABS, value) ?? state.tab;
  else if (key === "lanes") state.lanes = oneOf(GROUP_KINDS, value) ?? state.lanes;
  else if (key === "by") state.by = oneOf(["none", ...GROUP_KINDS], value) ?? state.by;
  else if (key === "inverted") state.inverted = value === "1";
  else if (key === "compare") state.compare = value === "1";
  else if (key === "rate") state.perSecond = value === "1";
  else if (key === "search") state.search = value.slice(0, LONGEST_TEXT);
  else if (key === "f") state.selected = whole(value, limits.names) ?? -1;
  else if (key === "sort") state.sort = oneOf(SORT_KEYS, value) ?? state.sort;
  else if (key === "idle") state.add({ kind: "idle" });
  else if (key === "only" && value !== "") {
    state.add({ kind: "only", text: value.slice(0, LONGEST_TEXT) });
  } else if (key === "through") {
    const frame = whole(value, limits.names);
    if (frame !== null) state.add({ kind: "through", frame });
  } else if (key === "time") {
    const range = rangeOf(value, limits);
    if (range !== null) state.add({ kind: "time", ...range });
  } else if (key === "thread") state.thread = whole(value, 2 ** 31) ?? -1;
  else if (key === "window") state.window = rangeOf(value, limits);
  else if (key === "lane") {
    const [kind, number] = value.split(":");
    const lane = oneOf(GROUP_KINDS, kind ?? "");
    const isUnknown = number === "-1";
    const laneKey = isUnknown ? -1 : whole(number ?? "", 2 ** 31);
    if (lane !== null && laneKey !== null) state.add({ kind: "lane", lane, key: laneKey });
  } else if (key === "zoom") {
    const frames = value.split(".").slice(0, LONGEST_ZOOM)
      .map((part) => whole(part, limits.names + limits.groups));
    if (!frames.includes(null)) state.zoom = frames.map((frame) => frame ?? 0);
  }
}

/**
 * Returns a range of steps, or null.
 * @param {string} text
 * @param {Limits} limits
 */
function rangeOf(text, limits) {
  const [from, to, ...more] = text.split("-").map((part) => whole(part, limits.steps + 1));
  if (from == null || to == null || more.length > 0 || from >= to) return null;
  return { from, to };
}

/**
 * Returns a whole number below a limit, or null.
 * @param {string} text
 * @param {number} limit
 * @returns {number | null}
 */
function whole(text, limit) {
  if (!/^\d{1,15}$/.test(text)) return null;
  const number = Number(text);
  return number < limit ? number : null;
}

/**
 * @template {string} T
 * @param {T[]} choices
 * @param {string} text
 * @returns {T | null}
 */
function oneOf(choices, text) {
  return choices.find((choice) => choice === text) ?? null;
}
