// What a box is, in words: beside the mouse, and in the status line.

import { byId, el } from "./dom.js";
import { counted, shareOf } from "./format.js";
import { clean, SHOWN } from "./names.js";
import { KIND } from "./model.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./merge.js").Box} Box */
/** @typedef {import("./merge.js").Merge} Merge */

/** Kinds of frames that are worth a word. @type {Map<number | undefined, string>} */
const KIND_WORDS = new Map([
  [KIND.kernel, "kernel"], [KIND.unnamed, "no symbol"], [KIND.jit, "just-in-time compiled"],
  [KIND.inlinedUser, "inlined"], [KIND.inlinedKernel, "kernel, inlined"],
  [KIND.inferred, "start inferred, name unknown"], [KIND.idle, "kernel, idle"],
]);

/**
 * Returns a frame's module and kind in words.
 * @param {View} view
 * @param {number} frame
 */
export function origin(view, frame) {
  const module = clean(view.recording.moduleName(frame), 120);
  return [module, KIND_WORDS.get(view.recording.kind[frame])].filter(Boolean).join(" · ");
}

/**
 * Returns a box's figures in words: share of what is shown, and of all.
 * @param {View} view
 * @param {{weight: number, samples: number}} figures
 */
function figuresText(view, { weight, samples }) {
  const ofAll = view.state.filters.length === 0 ? ""
    : ` of what is shown, ${shareOf(weight, view.wholeWeight)} of all`;
  const amount = view.event.meta.unit === "samples" ? "" : view.amount(weight) + ", ";
  return `${shareOf(weight, view.a.all)}${ofAll}: ${amount}${counted(samples, "sample")}`;
}

/**
 * Returns a box in lines: name, origin, figures, and how they changed.
 * @param {View} view
 * @param {Box} box
 * @param {Merge} merge
 * @returns {string[]}
 */
export function boxLines(view, box, merge) {
  const figures = merge.figures(box, view.a);
  const name = view.name(box.frame, SHOWN.tip);
  const lines = [name, origin(view, box.frame), figuresText(view, figures)];
  if (view.b !== null) {
    const { a, b, change } = view.compareFigures(box.frame, figures, merge.figures(box, view.b));
    const none = view.hasTwo ? "no change that rep diff marks" : "no more than chance";
    const mark = change === 0 ? none : change > 0 ? "▲ more" : "▼ less";
    lines.push(`${view.shareText(a)}, in ${view.otherName} ${view.shareText(b)}: ${mark}`);
  }
  return lines.filter((line) => line !== "");
}

/**
 * Shows lines beside the mouse; none: hides them.
 * @param {string[]} lines
 * @param {number} x
 * @param {number} y
 */
export function showTip(lines, x, y) {
  const tip = byId("tip");
  tip.hidden = lines.length === 0;
  if (tip.hidden) return;
  tip.replaceChildren(...lines.map((line, i) => el(i === 0 ? "strong" : "span", {}, line)));
  const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
  const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
}
