// The timeline: CPUs busy over time, and lanes below it.

import { css } from "./colours.js";
import { button, byId, canvasOf, el, setText, sized } from "./dom.js";
import { axisStep, plain, shareOf } from "./format.js";
import { clean } from "./names.js";
import { cellMasks, stacksThrough } from "./filter.js";
import { Brush } from "./brush.js";
import { CLASSES } from "./classes.js";
import { keyOf } from "./group.js";
import { ACTIVITY } from "./extents.js";
import { activitySeries, classSeries, Lanes, nodeSeries } from "./series.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./series.js").Columns} Columns */

/** Height of the overview, of its axis, and of a lane. */
const OVERVIEW = 54;
const AXIS = 16;
const LANE = 19;
/** Lanes shown at first, and at most. */
const FIRST_LANES = 5;
const MOST_LANES = 500;

/**
 * A layer of the overview: a series, its name, and its colour in the palette.
 * @typedef {{of: number, name: string, fill: keyof import("./colours.js").Palette["curve"]}} Layer
 */

/** Layers by class of code, from below. @type {Layer[]} */
const BY_CLASS = [
  { of: CLASSES.kernel, name: "kernel", fill: "kernel" },
  { of: CLASSES.user, name: "user", fill: "user" },
  { of: CLASSES.unnamed, name: "no name", fill: "unnamed" },
];

/** Layers by what threads did, from below. @type {Layer[]} */
const BY_ACTIVITY = [
  { of: ACTIVITY.running, name: "running", fill: "user" },
  { of: ACTIVITY.preempted, name: "preempted", fill: "kernel" },
  { of: ACTIVITY.runnable, name: "runnable", fill: "runnable" },
  { of: ACTIVITY.waiting, name: "waiting", fill: "waiting" },
  { of: ACTIVITY.idle, name: "idle", fill: "unnamed" },
  { of: ACTIVITY.unknown, name: "unknown", fill: "unnamed" },
];

/** Layer of lanes of samples. @type {Layer[]} */
const ONE_LAYER = [{ of: 0, name: "", fill: "user" }];

/** Overview and lanes. */
export class Timeline {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.view = app.view;
    this.palette = app.palette;
    this.overview = canvasOf("overview");
    this.plot = byId("overview-plot");
    this.laneCanvas = canvasOf("lane-canvas");
    this.laneNames = byId("lane-names");
    this.brush = new Brush(app, this.plot, [this.overview, this.laneCanvas]);
    this.brush.onClick = (event) => this.clickLane(event);
    this.lanesShown = FIRST_LANES;
    /** @type {Lanes | null} */
    this.lanes = null;
    /** Series of the overview: by class of code, or by activity. @type {Float64Array[]} */
    this.series = [];
    /** Layers with anything in them. @type {Layer[]} */
    this.layers = [];
    /** Cells that the overview shows. @type {import("./filter.js").Mask} */
    this.cells = new Uint8Array(0);
    /** Mask of the nodes that are drawn over it. @type {Uint8Array | null} */
    this.marked = null;
    /** @type {Float64Array | null} */
    this.overlay = null;
    /** @type {Columns | null} */
    this.columns = null;
    /** @type {Map<number, Float64Array[]>} */
    this.courses = new Map();
    this.drawnWidth = 0;
    /** Pictures without the range, painted only when they change: dragging copies them. */
    this.pictures = [document.createElement("canvas"), document.createElement("canvas")];
    this.isStale = true;
    /** Lanes shown. @type {{group: number, name: HTMLElement, share: HTMLElement}[]} */
    this.rows = [];
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
    const { recording, event, state } = view;
    const side = new Uint8Array(event.cellThread.length);
    for (let cell = 0; cell < side.length; cell++) {
      side[cell] = recording.threads.side[event.cellThread[cell]] === state.side ? 1 : 0;
    }
    if (state.hidesIdle()) this.dropIdle(side);
    this.lanes = new Lanes(recording, event, view.groups(state.lanes), side);
    this.courses.clear();
    this.columns = null;
    this.cells = cellMasks(recording, event, state, false).a;
    if (this.isBusy) this.dropIdle(this.cells);
    this.isStale = true;
    this.refreshOverlay();
    this.makeRows();
  }

  /**
   * Counts what the overview shows in each column.
   * @param {Columns} columns
   */
  count(columns) {
    const { view, cells } = this;
    const { event } = view;
    const { extents } = event;
    this.series = extents === null
      ? classSeries(event, view.classes, cells, view.nodes, columns)
      : activitySeries(event, extents, cells, view.nodes, this.threads(), columns);
    const layers = extents === null ? BY_CLASS : BY_ACTIVITY;
    this.layers = layers.filter(({ of }) => extents === null || this.series[of]?.some((one) => one > 0));
    this.overlay = this.marked === null ? null : nodeSeries(event, cells, this.marked, columns);
  }

  /** Mask of the threads that the filters leave, if switches can say when they ran. */
  threads() {
    const { recording, event, state } = this.view;
    const lane = state.lane();
    if (event.ran === null || lane?.lane === "cpu") return null;
    const { side, pid } = recording.threads;
    return side.map((of, thread) => {
      const isInLane = lane === null || keyOf(recording, lane.lane, thread, 0) === lane.key;
      return of === state.side && isInLane && !(state.hidesIdle() && pid[thread] === 0) ? 1 : 0;
    });
  }

  /** Whether the curve is that of busy CPUs, of which idle tasks are no part. */
  get isBusy() {
    const { meta } = this.view.event;
    return meta.counts_time && (meta.axis ?? "CPUs busy") === "CPUs busy";
  }

  /** @param {import("./filter.js").Mask} cells */
  dropIdle(cells) {
    const { recording, event } = this.view;
    for (let cell = 0; cell < cells.length; cell++) {
      if (recording.threads.pid[event.cellThread[cell]] === 0) cells[cell] = 0;
    }
  }

  /** Finds anew what the search or the selection draws over the overview. */
  refreshOverlay() {
    const { recording, state, matched, matches } = this.view;
    let frames = matches > 0 ? matched : null;
    if (frames === null && state.selected >= 0) {
      frames = new Uint8Array(recording.meta.names);
      frames[state.selected] = 1;
    }
    this.isStale = true;
    this.marked = frames === null ? null : stacksThrough(recording, frames);
    const { nodes: mask } = this.view;
    if (this.marked === null || mask === null) return;
    for (let i = 0; i < this.marked.length; i++) this.marked[i] &= mask[i];
  }

  /**
   * Shows what a thread did where its lane is clicked.
   * @param {PointerEvent} event
   */
  clickLane(event) {
    const { lanes, view } = this;
    if (event.target !== this.laneCanvas || lanes?.groups.kind !== "thread" || view.event.extents === null) return false;
    const bounds = this.laneCanvas.getBoundingClientRect();
    const row = this.rows[Math.floor((event.clientY - bounds.top) / LANE)];
    if (row === undefined) return false;
    const { from, to } = view.window;
    const step = from + ((event.clientX - bounds.left) / bounds.width) * (to - from);
    return this.app.showStay(lanes.groups.keys[row.group] ?? -1, step);
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
      const name = button("button.lane", "", () => this.app.lane(key), {
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
    const { from, to } = view.window;
    const { columns } = this;
    if (columns === null || this.drawnWidth !== width || columns.from !== from || columns.to !== to) {
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
    this.brush.place(width);
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
    this.count(columns);
    const { series, overlay } = this;
    const top = this.scaleTop(series, columns);
    for (let column = 0; column < columns.count; column++) {
      const { left, right } = this.edges(column, width);
      let y = OVERVIEW;
      for (const { of, fill } of this.layers) {
        const height = this.height(series[of]?.[column] ?? 0, column, top, OVERVIEW - 2);
        context.fillStyle = css(palette.curve[fill]);
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
    const { counts_time: countsTime, axis } = view.event.meta;
    setText(byId("overview-top"), countsTime ? plain(top) : "");
    setText(byId("overview-name"), axis ?? (countsTime ? "CPUs busy" : "events"));
    byId("curves").replaceChildren(...this.layers.toReversed().map(({ name, fill }) =>
      el(`span.curve.${fill}`, {}, name)));
  }

  /**
   * Returns the top of the scale: CPUs, or the weight per nanosecond of the highest column.
   * @param {Float64Array[]} series
   * @param {Columns} columns
   */
  scaleTop(series, columns) {
    const { sides } = this.view.recording.meta;
    const cpus = sides[this.view.state.side]?.cpus ?? 0;
    if (this.isBusy && cpus > 0) return cpus;
    let top = 0;
    for (let column = 0; column < columns.count; column++) {
      let sum = 0;
      for (const one of series) sum += one[column];
      top = Math.max(top, this.rate(sum, column));
    }
    // Lengths of times are rounded: three threads are not 3.02.
    if (this.view.event.extents !== null) top = Math.ceil(top * 10 - 0.5) / 10;
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
    const { window } = view;
    const [begin, end] = [window.from * this.step, window.to * this.step];
    const length = end - begin;
    const step = axisStep(length, width / 110);
    const unit = end >= 1e9 ? 1e9 : end >= 1e6 ? 1e6 : end >= 1e3 ? 1e3 : 1;
    const places = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
    const unitName = unit === 1e9 ? "s" : unit === 1e6 ? "ms" : unit === 1e3 ? "µs" : "ns";
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (let mark = Math.ceil(begin / step); mark * step < end; mark++) {
      const time = mark * step;
      const x = Math.round(((time - begin) / length) * width);
      context.fillStyle = css(palette.muted, 0.25);
      if (x > 0) context.fillRect(x, 0, 1, OVERVIEW);
      context.fillStyle = css(palette.muted);
      const number = (time / unit).toFixed(Math.min(places, 9));
      const text = `${time === 0 ? "0" : number} ${unitName}`;
      if (x + context.measureText(text).width + 4 < width) {
        context.fillText(text, Math.max(x - 8, 1), OVERVIEW + AXIS / 2 + 1);
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
    const layers = this.view.event.extents === null ? ONE_LAYER : this.layers;
    let top = 0;
    for (const row of this.rows) {
      const courses = this.courses.get(row.group) ?? lanes.courses(row.group, columns);
      this.courses.set(row.group, courses);
      for (let column = 0; column < columns.count; column++) {
        let sum = 0;
        for (const { of } of layers) sum += courses[of]?.[column] ?? 0;
        top = Math.max(top, this.rate(sum, column));
      }
    }
    // Lengths of times are rounded.
    if (this.view.event.extents !== null) top = Math.max(1, Math.round(top));
    this.rows.forEach((row, i) => {
      const courses = this.courses.get(row.group) ?? [];
      const bottom = (i + 1) * LANE - 1;
      for (let column = 0; column < columns.count; column++) {
        const { left, right } = this.edges(column, width);
        let y = bottom;
        for (const { of, fill } of layers) {
          const weight = courses[of]?.[column] ?? 0;
          if (weight <= 0) continue;
          const high = Math.max(this.height(weight, column, top || 1, LANE - 4), 1);
          context.fillStyle = css(palette.curve[fill]);
          context.fillRect(left, y - high, right - left, high);
          y -= high;
        }
      }
      context.fillStyle = css(palette.line);
      context.fillRect(0, bottom, width, 1);
    });
    this.paintWaits(context, width);
    this.paintPath(context, width);
  }

  /**
   * Writes what threads wait for into their lanes, where there is room.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  paintWaits(context, width) {
    const { lanes, palette, view } = this;
    const { waits, threads } = view.recording;
    if (lanes === null || view.event.extents === null || lanes.groups.kind !== "thread") return;
    const rows = new Map(this.rows.map((row, i) => [lanes.groups.keys[row.group], i]));
    const scale = width / (view.window.to - view.window.from);
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = css(palette.muted);
    for (const { thread, from, to, what } of waits) {
      const left = Math.max((from - view.window.from) * scale, 0);
      const right = Math.min((to - view.window.from) * scale, width);
      const row = threads.side[thread] === view.state.side ? rows.get(threads.tid[thread]) : undefined;
      if (row === undefined || right - left < 30) continue;
      const length = context.measureText(what).width;
      if (length + 8 < right - left) context.fillText(what, (left + right - length) / 2, row * LANE + LANE / 2);
    }
  }

  /**
   * Draws the critical path: a bright line in the lanes of the threads that are on it, and thin
   * ones where it goes on with another.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  paintPath(context, width) {
    const { lanes, palette, view } = this;
    const { path, threads, meta } = view.recording;
    if (path === null || lanes === null || view.event.extents === null || lanes.groups.kind === "cpu") return;
    const rows = new Map(this.rows.map((row, i) => [lanes.groups.keys[row.group], i]));
    const rowOf = new Int32Array(meta.threads).fill(-1);
    for (let thread = 0; thread < rowOf.length; thread++) {
      if (threads.side[thread] !== view.state.side) continue;
      rowOf[thread] = rows.get(keyOf(view.recording, lanes.groups.kind, thread, 0)) ?? -1;
    }
    const { pieces, changes } = path.inRows(rowOf, view.window, width);
    context.fillStyle = css(palette.path);
    for (const { row, left, right } of pieces) {
      context.fillRect(left, (row + 1) * LANE - 5, Math.max(right - left, 1), 4);
    }
    for (const { x, from, to } of changes) {
      const top = (Math.min(from, to) + 1) * LANE - 3;
      context.fillRect(Math.round(x), top, 1, Math.abs(to - from) * LANE);
    }
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
    const { window } = this.view;
    const [from, to] = [time.from, time.to].map((step) => {
      const part = (step - window.from) / (window.to - window.from);
      return Math.min(Math.max(part, 0), 1) * width;
    });
    context.fillStyle = css(this.palette.page, 0.68);
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.fillStyle = css(this.palette.accent);
    context.fillRect(Math.round(from) - 1, 0, 2, height);
    context.fillRect(Math.round(to) - 1, 0, 2, height);
  }
}
