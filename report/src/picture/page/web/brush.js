// The brush: a range of time, dragged over the timeline, or moved with handles and keys.

import { byId } from "./dom.js";
import { duration } from "./format.js";

/** @typedef {import("./app.js").App} App */

/** The brush and its two handles. */
export class Brush {
  /**
   * @param {App} app
   * @param {HTMLElement} plot
   * @param {HTMLElement[]} targets What can be dragged over.
   */
  constructor(app, plot, targets) {
    this.app = app;
    this.view = app.view;
    this.plot = plot;
    /** Length of a step. */
    this.ns = app.view.recording.meta.step;
    /** Takes a click on a target; says whether it was for it. @type {(event: PointerEvent) => boolean} */
    this.onClick = () => false;
    this.handles = [byId("brush-from"), byId("brush-to")];
    for (const target of targets) {
      target.addEventListener("pointerdown", (event) => this.drag(event, -1));
    }
    this.handles.forEach((handle, i) => {
      handle.addEventListener("pointerdown", (event) => this.drag(event, i));
      handle.addEventListener("keydown", (event) => this.key(event, i));
    });
  }

  /** @param {number} width */
  place(width) {
    const { state, steps, window } = this.view;
    const time = state.time() ?? window;
    this.handles.forEach((handle, i) => {
      const step = i === 0 ? time.from : time.to;
      const x = Math.min(Math.max(((step - window.from) / (window.to - window.from)) * width, 0), width);
      handle.style.left = x + "px";
      handle.classList.toggle("resting", state.time() === null);
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", String(steps));
      handle.setAttribute("aria-valuenow", String(step));
      handle.setAttribute("aria-valuetext", duration(step * this.ns));
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
    const { from: first, to: end } = view.window;
    const stepAt = (/** @type {PointerEvent} */ at) => {
      const part = (at.clientX - bounds.left) / bounds.width;
      return first + Math.round(Math.min(Math.max(part, 0), 1) * (end - first));
    };
    const target = /** @type {HTMLElement} */ (event.currentTarget);
    const time = view.state.time() ?? view.window;
    const fixed = handle === 0 ? time.to : handle === 1 ? time.from : stepAt(event);
    let moved = false;
    target.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ at) => {
      if (!moved && Math.abs(at.clientX - event.clientX) < 3) return;
      moved = true;
      const other = stepAt(at);
      const from = Math.min(fixed, other, view.steps - 1);
      const to = Math.max(fixed, other, from + 1);
      this.app.range({ from, to: Math.min(to, view.steps) }, false);
    };
    const up = () => {
      target.removeEventListener("pointermove", move);
      target.removeEventListener("pointerup", up);
      target.removeEventListener("pointercancel", up);
      if (moved) this.app.range(view.state.time(), true);
      else if (handle < 0 && !this.onClick(event)) this.app.range(null, true);
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
    const by = Math.max(1, Math.round((view.window.to - view.window.from) * (event.shiftKey ? 0.1 : 0.01)));
    const time = view.state.time() ?? view.window;
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
    this.app.range(isAll ? null : { from, to }, true);
    this.app.status(`${duration(from * this.ns)} to ${duration(to * this.ns)}`);
  }
}
