// The timeline: CPUs busy over time, lanes below it, and the brush that chooses a range of time.

import { css } from "./colours.js";
import { button, byId, canvasOf, el, setText, sized } from "./dom.js";
import { axisStep, duration, plain, shareOf } from "./format.js";
import { clean } from "./names.js";
import { cellMasks, stacksThrough } from "./filter.js";
import { CLASSES, classSeries, Lanes, nodeSeries } from "./series.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./colours.js").Palette} Palette */
/** @typedef {import("./series.js").Columns} Columns */

/** Height of the overview, of its axis, and of a lane. */
const OVERVIEW = 54;
const AXIS = 16;
const LANE = 19;
/** Lanes shown at first, and at most. */
const FIRST_LANES = 5;
const MOST_LANES = 500;

/**
 * What the timeline tells the page.
 * @typedef {object} TimelineEvents
 * @property {(range: {from: number, to: number} | null, isDone: boolean) => void} onRange
 * @property {(key: number) => void} onLane
 * @property {(text: string) => void} onStatus
 */

/** Overview, lanes and brush. */
export class Timeline {
  /**
   * @param {View} view
   * @param {Palette} palette
   * @param {TimelineEvents} events
   */
  constructor(view, palette, events) {
    this.view = view;
    this.palette = palette;
    this.events = events;
    this.overview = canvasOf("overview");
    this.plot = byId("overview-plot");
    this.laneCanvas = canvasOf("lane-canvas");
    this.laneNames = byId("lane-names");
    this.handles = [byId("brush-from"), byId("brush-to")];
    this.lanesShown = FIRST_LANES;
    /** @type {Lanes | null} */
    this.lanes = null;
    /** @type {Float64Array[]} */
    this.classes = [];
    /** @type {Float64Array | null} */
    this.overlay = null;
    /** @type {Columns | null} */
    this.columns = null;
    /** @type {Map<number, Float64Array>} */
    this.courses = new Map();
    this.drawnWidth = 0;
    /** Pictures without the range, painted only when they change: dragging copies them. */
    this.pictures = [document.createElement("canvas"), document.createElement("canvas")];
    this.isStale = true;
    /** Names of the lanes with their shares. @type {{group: number, name: HTMLElement, share: HTMLElement}[]} */
    this.rows = [];
    for (const target of [this.overview, this.laneCanvas]) {
      target.addEventListener("pointerdown", (event) => this.drag(event, -1));
    }
    this.handles.forEach((handle, i) => {
      handle.addEventListener("pointerdown", (event) => this.drag(event, i));
      handle.addEventListener("keydown", (event) => this.key(event, i));
    });
  }

  get step() {
    return this.view.recording.meta.step;
  }

  /** Number of lanes that "More" could show. */
  get lanesLeft() {
    return Math.min(this.lanes?.order.length ?? 0, MOST_LANES) - this.lanesShown;
  }

  /** Shows more lanes, or the first ones again. */
  more() {
    this.lanesShown = this.lanesLeft > 0 ? this.lanesShown * 5 : FIRST_LANES;
    this.makeRows();
    this.draw();
  }

  /** Counts anew: another event, side, kind of lanes or filter besides the time. */
  refresh() {
    const { view } = this;
    const { recording, event, state, cache } = view;
    const side = new Uint8Array(event.cellThread.length);
    for (let cell = 0; cell < side.length; cell++) {
      side[cell] = recording.threads.side[event.cellThread[cell]] === state.side ? 1 : 0;
    }
    if (state.hidesIdle()) this.dropIdle(side);
    this.lanes = new Lanes(event, view.groups(state.lanes), cache.cellWeight, side);
    this.courses.clear();
    this.columns = null;
    const cells = cellMasks(recording, event, state, false).a;
    if (this.isBusy) this.dropIdle(cells);
    this.isStale = true;
    this.classes = classSeries(recording, event, view.classes, cells, view.nodes);
    this.refreshOverlay();
    this.makeRows();
  }

  /** Whether the curve is that of busy CPUs, of which idle tasks are no part. */
  get isBusy() {
    const { meta } = this.view.event;
    return meta.counts_time && (meta.axis ?? "CPUs busy") === "CPUs busy";
  }

  /** @param {Uint8Array} cells */
  dropIdle(cells) {
    const { recording, event } = this.view;
    for (let cell = 0; cell < cells.length; cell++) {
      if (recording.threads.pid[event.cellThread[cell]] === 0) cells[cell] = 0;
    }
  }

  /** Counts anew what the search or the selection draws over the overview. */
  refreshOverlay() {
    const { recording, event, state, matched, matches } = this.view;
    let frames = matches > 0 ? matched : null;
    if (frames === null && state.selected >= 0) {
      frames = new Uint8Array(recording.meta.names);
      frames[state.selected] = 1;
    }
    this.overlay = null;
    this.isStale = true;
    if (frames === null) return;
    const nodes = stacksThrough(recording, frames);
    const { nodes: mask } = this.view;
    if (mask !== null) for (let i = 0; i < nodes.length; i++) nodes[i] &= mask[i];
    const cells = cellMasks(recording, event, state, false).a;
    if (this.isBusy) this.dropIdle(cells);
    this.overlay = nodeSeries(recording, event, cells, nodes);
  }

  /** Makes the names of the lanes. */
  makeRows() {
    const { lanes, view } = this;
    if (lanes === null) return;
    this.isStale = true;
    const chosen = view.state.lane();
    this.rows = lanes.order.slice(0, this.lanesShown).map((group) => {
      const key = lanes.groups.keys[group];
      const isChosen = chosen?.lane === lanes.groups.kind && chosen.key === key;
      const label = clean(lanes.groups.labels[group] ?? "", 80) || "(no name)";
      const share = el("span.share");
      const name = button("button.lane", "", () => this.events.onLane(key), {
        "aria-pressed": String(isChosen), title: label,
      });
      name.append(el("span.lane-name", {}, label), share);
      return { group, name, share };
    });
    this.laneNames.replaceChildren(...this.rows.map((row) => row.name));
    byId("lanes").classList.toggle("many", this.rows.length > FIRST_LANES);
  }

  /** Draws everything for the state's range of time. */
  draw() {
    const { view, lanes } = this;
    const width = this.plot.clientWidth;
    if (width === 0 || lanes === null) return;
    if (this.columns === null || this.drawnWidth !== width) {
      this.columns = view.columns(width);
      this.drawnWidth = width;
      this.courses.clear();
      this.isStale = true;
    }
    const heights = [OVERVIEW + AXIS, Math.max(this.rows.length * LANE, 1)];
    if (this.isStale) {
      this.paintOverview(sized(this.pictures[0], width, heights[0]), width);
      this.paintLanes(sized(this.pictures[1], width, heights[1]), width, heights[1]);
      this.isStale = false;
    }
    for (const [i, canvas] of [this.overview, this.laneCanvas].entries()) {
      const context = sized(canvas, width, heights[i]);
      context.drawImage(this.pictures[i], 0, 0, width, heights[i]);
      this.drawRange(context, width, i === 0 ? OVERVIEW : heights[i]);
    }
    this.placeHandles(width);
    const time = view.state.time();
    const weights = time === null ? lanes.weight : lanes.weightsIn(time.from, time.to);
    let all = 0;
    for (const weight of weights) all += weight;
    for (const row of this.rows) setText(row.share, shareOf(weights[row.group], all));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  paintOverview(context, width) {
    const { view, palette, columns } = this;
    if (columns === null) return;
    context.fillStyle = css(palette.page);
    context.fillRect(0, 0, width, OVERVIEW + AXIS);
    const binned = this.classes.map((series) => columns.bin(series));
    const overlay = this.overlay === null ? null : columns.bin(this.overlay);
    const top = this.scaleTop(binned, columns);
    const order = [CLASSES.kernel, CLASSES.user, CLASSES.unnamed];
    const fills = [palette.curve.kernel, palette.curve.user, palette.curve.unnamed];
    for (let column = 0; column < columns.count; column++) {
      const { left, right } = this.edges(column, width);
      let y = OVERVIEW;
      for (const [i, of] of order.entries()) {
        const height = this.height(binned[of]?.[column] ?? 0, column, top, OVERVIEW - 2);
        context.fillStyle = css(fills[i] ?? palette.text);
        context.fillRect(left, y - height, right - left, height);
        y -= height;
      }
      if (overlay !== null) {
        const height = this.height(overlay[column], column, top, OVERVIEW - 2);
        context.fillStyle = css(palette.matchCurve);
        context.fillRect(left, OVERVIEW - height, right - left, height);
      }
    }
    this.drawAxis(context, width);
    const isBusy = view.event.meta.counts_time;
    setText(byId("overview-top"), isBusy ? plain(top) : "");
    setText(byId("overview-name"), view.event.meta.counts_time
      ? view.event.meta.axis ?? "CPUs busy" : view.event.meta.axis ?? "events");
  }

  /**
   * Returns the top of the scale: CPUs, or the weight per nanosecond of the highest column.
   * @param {Float64Array[]} binned
   * @param {Columns} columns
   */
  scaleTop(binned, columns) {
    const { sides } = this.view.recording.meta;
    const cpus = sides[this.view.state.side]?.cpus ?? 0;
    if (this.isBusy && cpus > 0) return cpus;
    let top = 0;
    for (let column = 0; column < columns.count; column++) {
      let sum = 0;
      for (const series of binned) sum += series[column];
      top = Math.max(top, this.rate(sum, column));
    }
    return top > 0 ? top : 1;
  }

  /**
   * Returns weight per nanosecond.
   * @param {number} weight
   * @param {number} column
   */
  rate(weight, column) {
    const { columns, view } = this;
    if (columns === null) return 0;
    const steps = columns.first(column + 1) - columns.first(column);
    return (weight * view.event.unit) / (Math.max(steps, 1) * this.step);
  }

  /**
   * @param {number} weight
   * @param {number} column
   * @param {number} top
   * @param {number} height Of the plot.
   */
  height(weight, column, top, height) {
    return Math.min(this.rate(weight, column) / top, 1) * height;
  }

  /**
   * @param {number} column
   * @param {number} width
   */
  edges(column, width) {
    const count = this.columns?.count ?? 1;
    return {
      left: Math.round((column * width) / count),
      right: Math.round(((column + 1) * width) / count),
    };
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  drawAxis(context, width) {
    const { palette, view } = this;
    const length = view.steps * this.step;
    const step = axisStep(length, width / 110);
    const unit = length >= 1e9 ? 1e9 : length >= 1e6 ? 1e6 : length >= 1e3 ? 1e3 : 1;
    const unitName = unit === 1e9 ? "s" : unit === 1e6 ? "ms" : unit === 1e3 ? "µs" : "ns";
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (let time = 0; time < length; time += step) {
      const x = Math.round((time / length) * width);
      context.fillStyle = css(palette.muted, 0.25);
      if (time > 0) context.fillRect(x, 0, 1, OVERVIEW);
      context.fillStyle = css(palette.muted);
      const text = `${plain(time / unit)} ${unitName}`;
      if (x + context.measureText(text).width + 4 < width) {
        context.fillText(text, time === 0 ? x + 1 : x - 8, OVERVIEW + AXIS / 2 + 1);
      }
    }
    context.fillStyle = css(palette.line);
    context.fillRect(0, OVERVIEW, width, 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  paintLanes(context, width, height) {
    const { lanes, palette, columns } = this;
    if (lanes === null || columns === null) return;
    context.fillStyle = css(palette.page);
    context.fillRect(0, 0, width, height);
    let top = 0;
    for (const row of this.rows) {
      const course = this.courses.get(row.group) ?? lanes.course(row.group, columns);
      this.courses.set(row.group, course);
      for (let column = 0; column < course.length; column++) {
        top = Math.max(top, this.rate(course[column], column));
      }
    }
    this.rows.forEach((row, i) => {
      const course = this.courses.get(row.group);
      const bottom = (i + 1) * LANE - 1;
      context.fillStyle = css(palette.curve.user);
      for (let column = 0; course !== undefined && column < course.length; column++) {
        if (course[column] === 0) continue;
        const { left, right } = this.edges(column, width);
        const high = Math.max(this.height(course[column], column, top || 1, LANE - 4), 1);
        context.fillRect(left, bottom - high, right - left, high);
      }
      context.fillStyle = css(palette.line);
      context.fillRect(0, bottom, width, 1);
    });
  }

  /**
   * Fades what is outside the chosen range.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  drawRange(context, width, height) {
    const time = this.view.state.time();
    if (time === null) return;
    const from = (time.from / this.view.steps) * width;
    const to = (time.to / this.view.steps) * width;
    context.fillStyle = css(this.palette.page, 0.68);
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.fillStyle = css(this.palette.accent);
    context.fillRect(Math.round(from) - 1, 0, 2, height);
    context.fillRect(Math.round(to) - 1, 0, 2, height);
  }

  /** @param {number} width */
  placeHandles(width) {
    const { state, steps } = this.view;
    const time = state.time() ?? { from: 0, to: steps };
    this.handles.forEach((handle, i) => {
      const step = i === 0 ? time.from : time.to;
      const x = Math.min(Math.max((step / steps) * width, 0), width);
      handle.style.left = x + "px";
      handle.classList.toggle("resting", state.time() === null);
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", String(steps));
      handle.setAttribute("aria-valuenow", String(step));
      handle.setAttribute("aria-valuetext", duration(step * this.step));
    });
  }

  /**
   * Follows the mouse or a finger: a new range, or a handle that moves.
   * @param {PointerEvent} event
   * @param {number} handle
   */
  drag(event, handle) {
    if (event.button !== 0 || !event.isPrimary) return;
    const { view } = this;
    const bounds = this.plot.getBoundingClientRect();
    const stepAt = (/** @type {PointerEvent} */ at) => {
      const part = (at.clientX - bounds.left) / bounds.width;
      return Math.round(Math.min(Math.max(part, 0), 1) * view.steps);
    };
    const target = /** @type {HTMLElement} */ (event.currentTarget);
    const time = view.state.time() ?? { from: 0, to: view.steps };
    const fixed = handle === 0 ? time.to : handle === 1 ? time.from : stepAt(event);
    let moved = false;
    target.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ at) => {
      if (!moved && Math.abs(at.clientX - event.clientX) < 3) return;
      moved = true;
      const other = stepAt(at);
      const from = Math.min(fixed, other, view.steps - 1);
      const to = Math.max(fixed, other, from + 1);
      this.events.onRange({ from, to: Math.min(to, view.steps) }, false);
    };
    const up = () => {
      target.removeEventListener("pointermove", move);
      target.removeEventListener("pointerup", up);
      target.removeEventListener("pointercancel", up);
      if (moved) this.events.onRange(view.state.time(), true);
      else if (handle < 0) this.events.onRange(null, true);
    };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", up);
    target.addEventListener("pointercancel", up);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} handle
   */
  key(event, handle) {
    const { view } = this;
    const by = Math.max(1, Math.round(view.steps * (event.shiftKey ? 0.1 : 0.01)));
    const time = view.state.time() ?? { from: 0, to: view.steps };
    const old = handle === 0 ? time.from : time.to;
    /** @type {number} */
    let step;
    if (event.key === "ArrowLeft" || event.key === "ArrowDown") step = old - by;
    else if (event.key === "ArrowRight" || event.key === "ArrowUp") step = old + by;
    else if (event.key === "Home") step = 0;
    else if (event.key === "End") step = view.steps;
    else return;
    event.preventDefault();
    event.stopPropagation();
    const from = handle === 0 ? Math.max(0, Math.min(step, time.to - 1)) : time.from;
    const to = handle === 1 ? Math.min(view.steps, Math.max(step, time.from + 1)) : time.to;
    const isAll = from === 0 && to === view.steps;
    this.events.onRange(isAll ? null : { from, to }, true);
    this.events.onStatus(`${duration(from * this.step)} to ${duration(to * this.step)}`);
  }
}
