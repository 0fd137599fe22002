// The timeline: CPUs busy over time, and lanes below it.

import { css } from "./colours.js";
import { button, byId, canvasOf, el, setText, sized } from "./dom.js";
import { axisStep, plain, shareOf } from "./format.js";
import { clean } from "./names.js";
import { cellMasks, stacksThrough } from "./filter.js";
import { Brush } from "./brush.js";
import { CLASSES } from "./classes.js";
import { classSeries, Lanes, nodeSeries } from "./series.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./series.js").Columns} Columns */

/** Height of the overview, of its axis, and of a lane. */
const OVERVIEW = 54;
const AXIS = 16;
const LANE = 19;
/** Lanes shown at first, and at most. */
const FIRST_LANES = 5;
const MOST_LANES = 500;

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
}
