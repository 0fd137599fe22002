// Who a frame is: class in the overview, colour in graphs.

import { KIND } from "./model.js";
import { FILL, hash, slotsOf } from "./colours.js";

/** @typedef {import("./model.js").Recording} Recording */
/** @typedef {import("./model.js").EventData} EventData */

/** Classes of the overview, from below. */
export const CLASSES = { kernel: 0, user: 1, unnamed: 2 };

/**
 * Returns the class of each frame.
 * @param {Recording} recording
 * @returns {Uint8Array}
 */
export function classesOf(recording) {
  return recording.kind.map((kind) => {
    if ([KIND.unnamed, KIND.inferred].includes(kind)) return CLASSES.unnamed;
    const isKernel = [KIND.kernel, KIND.inlinedKernel, KIND.idle].includes(kind);
    return isKernel ? CLASSES.kernel : CLASSES.user;
  });
}

/**
 * Returns the fill of each frame: the module's hue, one of three shades by name.
 * @param {Recording} recording
 * @param {EventData} event
 * @returns {Uint8Array}
 */
export function fillsOf(recording, event) {
  const { meta, names, module, kind } = recording;
  const weights = new Float64Array(meta.modules.length + 1);
  for (const sums of event.sums) {
    for (let frame = 0; frame < meta.names; frame++) {
      weights[module[frame]] += sums[frame * 4];
    }
  }
  const slots = slotsOf(meta.modules.map((one) => one.name), weights.subarray(1));
  return Uint8Array.from(names, (name, frame) => {
    const shade = hash(name) % 3;
    switch (kind[frame]) {
      case KIND.kernel:
      case KIND.inlinedKernel:
      case KIND.idle:
        return FILL.kernel + shade;
      case KIND.unnamed:
      case KIND.inferred:
        return FILL.unnamed + shade;
      case KIND.cut:
        return FILL.cut;
      default: {
        const of = module[frame];
        return of === 0 ? FILL.unnamed + shade : slots[of - 1] * 3 + shade;
      }
    }
  });
}
