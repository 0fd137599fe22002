// The stack chart: what one thread did, from left to right in order of time.

import { css } from "./colours.js";
import { byId, canvasOf, el, isNarrow, setText, sized, TextWidths } from "./dom.js";
import { duration, shareOf } from "./format.js";
import { clean, SHOWN } from "./names.js";
import { ACTIVITY, ACTIVITY_WORDS } from "./extents.js";
import { waitAt } from "./waits.js";
import { boxesOf, stayAt, staysOf } from "./moments.js";
import { Lanes } from "./series.js";
import { origin, showTip } from "./tip.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./moments.js").Stay} Stay */
/** @typedef {import("./moments.js").StayBox} StayBox */

const CHART_FONT = "12px system-ui, sans-serif";
/** Threads that can be chosen. */
const MOST_THREADS = 200;

/** The chart of one thread. */
export class StackChart {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.view = app.view;
    this.palette = app.palette;
    this.scroller = byId("chart-scroller");
    this.canvas = canvasOf("chart-canvas");
    this.spacer = byId("chart-spacer");
    this.threads = /** @type {HTMLSelectElement} */ (byId("chart-thread"));
    this.widths = new TextWidths(CHART_FONT);
    /** @type {Stay[]} */
    this.stays = [];
    /** Thread that they are of. */
    this.tid = -1;
    /** What `stays` are of. */
    this.key = "";
    /** @type {StayBox[]} */
    this.boxes = [];
    /** Range while it is dragged, in pixels. @type {[number, number] | null} */
    this.dragged = null;
    this.threads.addEventListener("change", () => {
      const tid = Number(this.threads.value);
      app.change((state) => (state.thread = tid), { push: true });
    });
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => showTip([], 0, 0));
    this.canvas.addEventListener("dblclick", (event) => this.zoomTo(event));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  get row() {
    return isNarrow() ? 24 : 19;
  }

  /** Steps shown. */
  get range() {
    return this.view.state.time() ?? this.view.window;
  }

  /** Threads of the side shown, heaviest first, and the one that is shown. */
  chosen() {
    const { view } = this;
    const { state, event, recording } = view;
    const groups = view.groups("thread");
    const side = event.cellThread.map((thread) => (recording.threads.side[thread] === state.side ? 1 : 0));
    const lanes = new Lanes(recording, event, groups, Uint8Array.from(side));
    const order = lanes.order.slice(0, MOST_THREADS);
    const lane = state.lane();
    const wanted = state.thread >= 0 ? state.thread : lane?.lane === "thread" ? lane.key : -1;
    const group = groups.keys.indexOf(wanted);
    return { groups, order, group: group >= 0 ? group : order[0] ?? -1 };
  }

  /** Shows the thread and the time of the state. */
  show() {
    const { view } = this;
    const { state, event, recording } = view;
    const { groups, order, group } = this.chosen();
    const tid = groups.keys[group] ?? -1;
    const shown = order.includes(group) ? order : [group, ...order];
    const options = shown.map((one) =>
      el("option", { value: String(groups.keys[one]) }, clean(groups.labels[one] ?? "", 60) || "(no name)"));
    const names = options.map((one) => one.textContent).join("\n");
    if (this.threads.dataset["names"] !== names) this.threads.replaceChildren(...options);
    this.threads.dataset["names"] = names;
    this.threads.value = String(tid);
    this.tid = tid;
    const key = [event.index, state.side, tid].join();
    if (key !== this.key) {
      this.key = key;
      this.stays = staysOf(recording, event, tid, state.side);
      this.scroller.scrollTop = 0;
    }
    const { from, to } = this.range;
    const { step } = recording.meta;
    setText(byId("chart-note"), `${duration((to - from) * step)} from ${duration(from * step)} on; drag to see less, Esc to see more`);
    byId("chart-none").hidden = this.stays.length > 0;
    this.draw();
  }

  /** Lays out and draws. */
  draw() {
    const { scroller, view, row } = this;
    const width = scroller.clientWidth;
    const narrow = isNarrow();
    const most = narrow ? innerHeight * 0.6 : scroller.clientHeight;
    if (width === 0 || most === 0) return;
    this.boxes = boxesOf(view.recording, this.stays, this.range, width);
    let rows = 0;
    for (const box of this.boxes) rows = Math.max(rows, box.depth + 1);
    const height = narrow ? Math.round(Math.min(most, Math.max(rows, 4) * row)) : most;
    scroller.style.height = narrow ? height + "px" : "";
    this.spacer.style.height = Math.max(0, rows * row - height) + "px";
    const context = sized(this.canvas, width, height);
    context.fillStyle = css(this.palette.page);
    context.fillRect(0, 0, width, height);
    context.font = CHART_FONT;
    context.textBaseline = "middle";
    const top = scroller.scrollTop;
    for (const box of this.boxes) {
      const y = box.depth * row - top;
      if (y + row >= 0 && y <= height) this.drawBox(context, box, y);
    }
    if (this.dragged !== null) {
      const [from, to] = this.dragged;
      context.fillStyle = css(this.palette.accent, 0.25);
      context.fillRect(Math.min(from, to), 0, Math.abs(to - from), height);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {StayBox} box
   * @param {number} y
   */
  drawBox(context, { frame, left, right, isWait }, y) {
    const { view, palette, row } = this;
    const { matched, matches, state } = view;
    const size = right - left;
    const gap = size > 3 ? 1 : 0;
    const isMatch = matches > 0 && matched?.[frame] === 1;
    const fill = isMatch ? palette.match
      : isWait || matches > 0 ? palette.faded[view.fill(frame)] : palette.fills[view.fill(frame)];
    context.fillStyle = css(fill ?? palette.text);
    context.fillRect(left, y, Math.max(size - gap, 0.4), row - 1);
    if (frame === state.selected && size > 2) {
      context.strokeStyle = css(palette.text);
      context.lineWidth = 1;
      context.strokeRect(left + 0.5, y + 0.5, size - gap - 1, row - 2);
    }
    const room = size - 8;
    if (room < 16) return;
    context.fillStyle = css(isMatch ? palette.matchInk : palette.ink);
    const names = view.shortNames(frame);
    for (const [form, name] of names.entries()) {
      const text = this.widths.fit(context, name, room, form === names.length - 1);
      if (text === null) continue;
      context.fillText(text.text, left + 4, y + (row - 1) / 2 + 0.5);
      return;
    }
  }

  /**
   * Returns the step under the mouse.
   * @param {number} x
   */
  stepAt(x) {
    const { from, to } = this.range;
    const bounds = this.canvas.getBoundingClientRect();
    const part = (x - bounds.left) / bounds.width;
    return from + Math.min(Math.max(part, 0), 1) * (to - from);
  }

  /**
   * @param {MouseEvent} event
   * @returns {StayBox | null}
   */
  boxUnder(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const depth = Math.floor((event.clientY - bounds.top + this.scroller.scrollTop) / this.row);
    const x = event.clientX - bounds.left;
    return this.boxes.find((box) => box.depth === depth && x >= box.left && x < Math.max(box.right, box.left + 1)) ?? null;
  }

  /**
   * Returns a box in lines: function, how long it was there, and what the thread did.
   * @param {StayBox} box
   * @param {number} step Under the mouse.
   */
  lines(box, step) {
    const { view } = this;
    const { from, to } = this.range;
    const width = this.scroller.clientWidth || 1;
    const ns = ((box.right - box.left) / width) * (to - from) * view.recording.meta.step;
    const stay = stayAt(this.stays, step);
    const did = stay === null ? ""
      : `${ACTIVITY_WORDS[stay.activity]} ${duration((stay.to - stay.from) * view.recording.meta.step)}`;
    const isWait = stay !== null && (stay.activity === ACTIVITY.waiting || stay.activity === ACTIVITY.idle);
    const wait = isWait ? waitAt(view.recording, this.tid, view.state.side, stay) : null;
    const what = wait === null ? "" : `: ${wait.what}`;
    const share = shareOf(box.right - box.left, width);
    return [view.name(box.frame, SHOWN.tip), origin(view, box.frame), `${duration(ns)}, ${share} of what is shown`,
      view.event.extents === null ? "" : did + what].filter((line) => line !== "");
  }

  /** @param {PointerEvent} event */
  hover(event) {
    if (this.dragged !== null || event.pointerType === "touch") return;
    const box = this.boxUnder(event);
    const lines = box === null ? [] : this.lines(box, this.stepAt(event.clientX));
    showTip(lines, event.clientX, event.clientY);
    this.app.status(lines.join(" · "));
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    const { canvas } = this;
    const begin = event.clientX;
    const left = canvas.getBoundingClientRect().left;
    canvas.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ at) => {
      if (this.dragged === null && Math.abs(at.clientX - begin) < 4) return;
      showTip([], 0, 0);
      this.dragged = [begin - left, at.clientX - left];
      this.draw();
    };
    const up = (/** @type {PointerEvent} */ at) => {
      canvas.removeEventListener("pointermove", move);
      canvas.removeEventListener("pointerup", up);
      canvas.removeEventListener("pointercancel", up);
      const isDrag = this.dragged !== null;
      this.dragged = null;
      if (isDrag && at.type === "pointerup") this.narrow(this.stepAt(begin), this.stepAt(at.clientX));
      else if (!isDrag) {
        const box = this.boxUnder(at);
        if (box !== null) this.app.select(box.frame);
      }
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
  }

  /**
   * Shows the time of a box.
   * @param {MouseEvent} event
   */
  zoomTo(event) {
    const box = this.boxUnder(event);
    if (box === null) return;
    const { left } = this.canvas.getBoundingClientRect();
    this.narrow(this.stepAt(left + box.left), this.stepAt(left + box.right));
  }

  /**
   * Chooses a range of time.
   * @param {number} one
   * @param {number} other
   */
  narrow(one, other) {
    const from = Math.max(Math.floor(Math.min(one, other)), 0);
    const to = Math.min(Math.max(Math.ceil(Math.max(one, other)), from + 1), this.view.steps);
    if (from < to) this.app.range(from === 0 && to === this.view.steps ? null : { from, to }, true);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { from, to } = this.range;
    const length = to - from;
    const by = Math.max(Math.round(length / 8), 1);
    const { steps } = this.view;
    if (event.key === "ArrowLeft") this.narrow(Math.max(from - by, 0), Math.max(from - by, 0) + length);
    else if (event.key === "ArrowRight") this.narrow(Math.min(to + by, steps) - length, Math.min(to + by, steps));
    else if (event.key === "+" && length > 1) this.narrow(from + Math.floor(length / 4), to - Math.floor(length / 4));
    else if (event.key === "-") this.narrow(Math.max(from - length / 2, 0), Math.min(to + length / 2, steps));
    else return;
    event.preventDefault();
    event.stopPropagation();
    const { step } = this.view.recording.meta;
    this.app.status(`${duration(this.range.from * step)} to ${duration(this.range.to * step)}`);
  }
}
