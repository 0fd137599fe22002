// The graph on a canvas as large as the window onto it; a spacer beside it makes the scroll bar.

import { css } from "./colours.js";
import { isCalm, isNarrow, sized, TextWidths } from "./dom.js";
import { boxAt, layOut, Layout, pathOf, spanOf } from "./layout.js";
import { percent } from "./format.js";

/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./merge.js").Merge} Merge */
/** @typedef {import("./app.js").App} App */

const FONT = "12px system-ui, sans-serif";
const ANIMATION = 200;

/** One graph. */
export class Flame {
  /**
   * @param {App} app
   * @param {HTMLElement} scroller
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} spacer
   * @param {(path: number[]) => void} onZoom
   */
  constructor(app, scroller, canvas, spacer, onZoom) {
    this.app = app;
    this.view = app.view;
    this.palette = app.palette;
    this.scroller = scroller;
    this.canvas = canvas;
    this.spacer = spacer;
    this.onZoom = onZoom;
    /** @type {Merge | null} */
    this.merge = null;
    this.layout = new Layout();
    this.span = { from: 0, to: 1 };
    /** @type {number[]} */
    this.zoom = [];
    /** @type {Box | null} */
    this.cursor = null;
    /** Whether the cursor is drawn without the focus: after a step to a match. */
    this.marksCursor = false;
    this.widths = new TextWidths(FONT);
    this.animation = 0;
    this.frame = 0;
    this.rowHeight = 19;
    this.hoverFrame = -2;
    scroller.addEventListener("scroll", () => this.later());
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.later());
    canvas.addEventListener("blur", () => this.later());
  }

  /**
   * Shows a graph, zoomed to the box at the end of a path.
   * @param {Merge} merge
   * @param {number[]} zoom
   */
  show(merge, zoom) {
    const isSame = merge === this.merge;
    if (!isSame) {
      this.cursor = null;
      this.scroller.scrollTop = 0;
    }
    this.merge = merge;
    const moved = isSame && zoom.join(".") !== this.zoom.join(".");
    this.zoom = zoom;
    const target = this.target();
    if (moved && !isCalm()) this.animate(target);
    else {
      this.animation += 1;
      this.span = target;
      this.draw();
    }
  }

  /** Part of the width that the zoom asks for. */
  target() {
    if (this.merge === null || this.zoom.length === 0) return { from: 0, to: 1 };
    return spanOf(this.merge, this.view.a, boxAt(this.merge, this.zoom));
  }

  /** @param {{from: number, to: number}} target */
  animate(target) {
    const { from, to } = this.span;
    const begin = performance.now();
    const mine = ++this.animation;
    const step = (/** @type {number} */ now) => {
      if (mine !== this.animation) return;
      const part = Math.min(Math.max((now - begin) / ANIMATION, 0), 1);
      const eased = 1 - (1 - part) ** 3;
      this.span = {
        from: from + (target.from - from) * eased,
        to: to + (target.to - to) * eased,
      };
      if (part === 1) this.span = target;
      this.draw();
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Draws with the next frame of the screen. */
  later() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Lays out and draws. */
  draw() {
    const { merge, scroller, view } = this;
    const width = scroller.clientWidth;
    const narrow = isNarrow();
    const most = narrow ? innerHeight * 0.74 : scroller.clientHeight;
    if (merge === null || width === 0 || most === 0) return;
    this.rowHeight = narrow ? 24 : 19;
    const row = this.rowHeight;
    const lastRow = Math.ceil((scroller.scrollTop + most * 1.25) / row);
    this.layout = layOut(merge, view.a, this.span, width, lastRow);
    const below = this.layout.rows * row + (this.layout.isWhole ? 4 : most * 4);
    const height = narrow ? Math.round(Math.min(most, Math.max(below, 4 * row))) : most;
    scroller.style.height = narrow ? height + "px" : "";
    this.spacer.style.height = Math.max(0, below - height) + "px";
    const context = sized(this.canvas, width, height);
    context.fillStyle = css(this.palette.page);
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    const top = scroller.scrollTop;
    this.drawStrips(context, top, height);
    const last = Math.min(this.layout.rows, Math.ceil((top + height) / row));
    for (let at = Math.max(0, Math.floor(top / row)); at < last; at++) {
      const end = this.layout.rowStart[at + 1];
      for (let i = this.layout.rowStart[at]; i < end; i++) {
        this.drawBox(context, i, at * row - top, width);
      }
    }
    this.drawCursor(context, top, width);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} top
   * @param {number} height
   */
  drawStrips(context, top, height) {
    const { strips } = this.layout;
    const row = this.rowHeight;
    for (let i = 0; i < strips.length; i += 4) {
      const y = strips[i] * row - top;
      if (y + row < 0 || y > height) continue;
      context.fillStyle = css(this.fillOf(strips[i + 3], null), 0.6);
      context.fillRect(strips[i + 1], y, strips[i + 2], row - 1);
    }
  }

  /**
   * @param {number} frame
   * @param {Box | null} box
   * @returns {import("./colours.js").Rgb}
   */
  fillOf(frame, box) {
    const { view, palette } = this;
    const { matched, matches } = view;
    if (matched !== null && matches > 0) {
      if (matched[frame] === 1) return palette.match;
      return palette.faded[view.fill(frame)];
    }
    if (view.b !== null && this.merge !== null) {
      if (box === null) return palette.change[8];
      const { step } = view.compareFigures(frame,
        this.merge.figures(box, view.a), this.merge.figures(box, view.b));
      return palette.change[step];
    }
    return palette.fills[view.fill(frame)];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} i
   * @param {number} y
   * @param {number} width Of the canvas.
   */
  drawBox(context, i, y, width) {
    const { view, palette, layout } = this;
    const box = layout.boxes[i];
    const left = layout.x[i];
    const size = layout.width[i];
    const from = Math.max(left, 0);
    const to = Math.min(left + size, width);
    const row = this.rowHeight;
    const gap = size > 3 ? 1 : size > 1.5 ? 0.5 : 0;
    context.fillStyle = css(this.fillOf(box.frame, box));
    context.fillRect(from, y, Math.max(to - from - gap, 0.3), row - 1);
    const isChosen = view.state.selected >= 0 && box.frame === view.state.selected;
    if (isChosen || box.frame === this.hoverFrame) {
      context.strokeStyle = css(palette.text, isChosen ? 1 : 0.6);
      context.lineWidth = 1;
      if (to - from > 2) context.strokeRect(from + 0.5, y + 0.5, to - from - gap - 1, row - 2);
    }
    const room = to - from - 9;
    if (room < 16) return;
    const isMatch = view.matches > 0 && view.matched?.[box.frame] === 1;
    context.fillStyle = css(isMatch ? palette.matchInk : palette.ink);
    const names = view.shortNames(box.frame);
    const share = room > 70 ? percent(view.a.all > 0 ? box.weight / view.a.all : 0) : "";
    const shareWidth = share === "" ? 0 : this.widths.fit(context, share, 200, false)?.width ?? 0;
    const middle = y + (row - 1) / 2 + 0.5;
    for (let form = 0; form < names.length; form++) {
      const name = names[form] ?? "";
      const isLast = form === names.length - 1;
      const withShare = share === "" ? null
        : this.widths.fit(context, name, room - shareWidth - 10, isLast && room > 150);
      if (withShare !== null) {
        context.fillText(withShare.text, from + 4, middle);
        context.fillText(share, to - gap - shareWidth - 5, middle);
        return;
      }
      const alone = this.widths.fit(context, name, room, isLast);
      if (alone !== null) {
        context.fillText(alone.text, from + 4, middle);
        return;
      }
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} top
   * @param {number} width
   */
  drawCursor(context, top, width) {
    const isSeen = this.marksCursor || document.activeElement === this.canvas;
    if (this.cursor === null || !isSeen) return;
    const i = this.layout.boxes.indexOf(this.cursor);
    if (i < 0) return;
    const row = this.rowHeight;
    const from = Math.max(this.layout.x[i], 0);
    const to = Math.min(this.layout.x[i] + this.layout.width[i], width);
    context.strokeStyle = css(this.palette.accent);
    context.lineWidth = 2;
    const y = this.cursor.depth * row - top;
    context.strokeRect(from + 1, y + 1, Math.max(to - from - 2, 2), row - 3);
  }

  /**
   * @param {MouseEvent} event
   * @returns {Box | null}
   */
  boxUnder(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - bounds.top + this.scroller.scrollTop) / this.rowHeight);
    return this.layout.boxes[this.layout.at(row, event.clientX - bounds.left)] ?? null;
  }

  /** @param {PointerEvent} event */
  hover(event) {
    if (this.merge === null || event.pointerType === "touch") return;
    const box = this.boxUnder(event);
    this.canvas.style.cursor = box === null ? "default" : "pointer";
    this.app.point(box, this.merge, { x: event.clientX, y: event.clientY });
    const frame = box?.frame ?? -2;
    if (frame !== this.hoverFrame) {
      this.hoverFrame = frame;
      this.later();
    }
  }

  leave() {
    this.hoverFrame = -2;
    if (this.merge !== null) this.app.point(null, this.merge, null);
    this.later();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const box = this.boxUnder(event);
    if (box === null) return;
    this.cursor = box;
    this.marksCursor = false;
    this.app.selectBox(box);
  }

  /** @param {MouseEvent} event */
  doubleClick(event) {
    const box = this.boxUnder(event);
    if (box !== null) this.onZoom(pathOf(box));
  }

  /**
   * Moves to the next box that the search found.
   * @returns {boolean} Whether there is one that is wide enough.
   */
  nextMatch() {
    const { boxes } = this.layout;
    const matched = this.view.matched;
    const from = this.cursor === null ? -1 : boxes.indexOf(this.cursor);
    for (let i = 1; i <= boxes.length; i++) {
      const box = boxes[(from + i) % boxes.length];
      if (box === undefined || matched?.[box.frame] !== 1) continue;
      this.marksCursor = true;
      this.moveTo(box);
      return true;
    }
    return false;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { merge, view } = this;
    if (merge === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = this.cursor ?? boxAt(merge, this.zoom);
    /** @type {Box | null | undefined} */
    let next = null;
    if (event.key === "ArrowUp") next = box.parent;
    else if (event.key === "ArrowDown") {
      for (const child of merge.childrenOf(box)) {
        const isHeavier = merge.weigh(child, view.a) > (next ? merge.weigh(next, view.a) : 0);
        if (isHeavier) next = child;
      }
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const siblings = box.parent === null ? [] : merge.childrenOf(box.parent)
        .filter((sibling) => merge.weigh(sibling, view.a) > 0);
      next = siblings[siblings.indexOf(box) + (event.key === "ArrowLeft" ? -1 : 1)];
    } else if (event.key === "Home") next = merge.root;
    else if (event.key === "Enter") this.onZoom(pathOf(box));
    else if (event.key === "Backspace") this.onZoom(this.zoom.slice(0, -1));
    else if (event.key === " ") this.app.selectBox(box);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (next) this.moveTo(next);
  }

  /**
   * Moves the keyboard's place and brings it into view.
   * @param {Box} box
   */
  moveTo(box) {
    if (this.merge === null) return;
    this.cursor = box;
    const row = this.rowHeight;
    const { scroller } = this;
    const y = box.depth * row;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + row > scroller.scrollTop + scroller.clientHeight) {
      this.spacer.style.height = Math.max(this.spacer.offsetHeight, y + row) + "px";
      scroller.scrollTop = y + row - scroller.clientHeight;
    }
    const place = spanOf(this.merge, this.view.a, box);
    const isOutside = place.from >= this.span.to || place.to <= this.span.from;
    if (isOutside && box.parent !== null) this.onZoom(pathOf(box.parent));
    this.app.point(box, this.merge, null);
    this.later();
  }
}
