// Colours: OKLCH turned to RGB here, so that every browser shows the same, and so that tests can
// compute contrast. Hue says which module, three shades tell neighbours apart.

import { familyOf } from "./names.js";

/** Number of hues for modules of programs. */
export const HUES = 16;
/** Fills after those of the modules. */
const OTHERS = HUES * 3;
export const FILL = { kernel: OTHERS, unnamed: OTHERS + 3, group: OTHERS + 6, cut: OTHERS + 7 };
export const FILLS = OTHERS + 8;
/** Steps of a change's strength on each side of "no change". */
export const CHANGE_STEPS = 8;

/** @typedef {[number, number, number]} Rgb Red, green and blue from 0 to 255. */

/**
 * @typedef {object} Palette
 * @property {Rgb[]} fills By fill number.
 * @property {Rgb[]} faded The same while a search is on.
 * @property {Rgb[]} change From much less over nothing to much more.
 * @property {Rgb} ink Text on all of these.
 * @property {Rgb} match
 * @property {Rgb} matchInk
 * @property {Rgb} matchCurve The search, or the selected function, over the timeline.
 * @property {Rgb} path The critical path.
 * @property {Rgb} page Background of graphs.
 * @property {Rgb} text Text outside boxes.
 * @property {Rgb} muted
 * @property {Rgb} line
 * @property {Rgb} accent
 * @property {{user: Rgb, kernel: Rgb, unnamed: Rgb, waiting: Rgb, runnable: Rgb}} curve
 */

/**
 * Returns the RGB of an OKLCH colour, with less chroma where the screen cannot show it.
 * @param {number} lightness
 * @param {number} chroma
 * @param {number} hue In degrees.
 * @returns {Rgb}
 */
export function oklch(lightness, chroma, hue) {
  for (let c = chroma; ; c -= 0.005) {
    const linear = linearRgb(lightness, Math.max(c, 0), hue);
    if (c <= 0 || linear.every((part) => part >= -0.0005 && part <= 1.0005)) {
      return [gamma(linear[0]), gamma(linear[1]), gamma(linear[2])];
    }
  }
}

/**
 * @param {number} lightness
 * @param {number} chroma
 * @param {number} hue
 * @returns {Rgb} Linear, from 0 to 1 where it can be shown.
 */
function linearRgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/**
 * @param {number} linear
 * @returns {number} A byte.
 */
function gamma(linear) {
  const part = Math.min(Math.max(linear, 0), 1);
  return Math.round(255 * (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055));
}

/**
 * Returns the contrast of two colours as WCAG defines it, from 1 to 21.
 * @param {Rgb} one
 * @param {Rgb} other
 * @returns {number}
 */
export function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
}

/**
 * @param {Rgb} colour
 * @returns {number}
 */
function luminance(colour) {
  const [r, g, b] = colour.map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

/** Colours as they were written before: boxes ask for them thousands of times. */
const WRITTEN = new WeakMap();

/**
 * Returns a colour as CSS and canvas take it.
 * @param {Rgb} colour
 * @param {number} [alpha]
 * @returns {string}
 */
export function css(colour, alpha = 1) {
  if (alpha === 1) {
    const known = WRITTEN.get(colour);
    if (known !== undefined) return known;
    const text = `rgb(${colour[0]}, ${colour[1]}, ${colour[2]})`;
    WRITTEN.set(colour, text);
    return text;
  }
  return `rgba(${colour[0]}, ${colour[1]}, ${colour[2]}, ${alpha})`;
}

/**
 * Returns the hue of a module's slot. Kernel orange (62) keeps its distance.
 * @param {number} slot
 * @returns {number}
 */
function hueOf(slot) {
  return (80 + ((slot + 0.5) * 324) / HUES) % 360;
}

/**
 * Returns all colours of one scheme.
 * @param {boolean} dark
 * @returns {Palette}
 */
export function palette(dark) {
  const levels = dark ? [0.38, 0.42, 0.46] : [0.81, 0.85, 0.89];
  const fadedLevel = dark ? 0.27 : 0.945;
  const neutral = dark ? 0.35 : 0.9;
  /** @type {Rgb[]} */
  const fills = [];
  /** @type {Rgb[]} */
  const faded = [];
  /** @param {number} level @param {number} chroma @param {number} hue */
  function add(level, chroma, hue) {
    fills.push(oklch(level, chroma, hue));
    faded.push(oklch(fadedLevel + (level - levels[1]) * 0.25, chroma * 0.25, hue));
  }
  for (let slot = 0; slot < HUES; slot++) {
    for (const level of levels) add(level, dark ? 0.075 : 0.09, hueOf(slot));
  }
  for (const level of levels) add(level - (dark ? 0 : 0.01), dark ? 0.1 : 0.125, 62);
  for (const level of levels) add(level - (dark ? 0.04 : 0.03), 0.004, 260);
  add(dark ? 0.33 : 0.88, dark ? 0.03 : 0.025, 262);
  add(dark ? 0.31 : 0.86, 0.01, 30);
  /** @type {Rgb[]} */
  const change = [];
  for (let step = -CHANGE_STEPS; step <= CHANGE_STEPS; step++) {
    const strength = Math.abs(step) / CHANGE_STEPS;
    const full = dark ? 0.51 : 0.73;
    const chroma = step === 0 ? 0 : 0.03 + 0.13 * strength;
    change.push(oklch(neutral + (full - neutral) * strength, chroma, step < 0 ? 250 : 50));
  }
  return {
    fills, faded, change,
    ink: dark ? oklch(0.96, 0.005, 260) : oklch(0.2, 0.01, 260),
    match: dark ? oklch(0.76, 0.2, 345) : oklch(0.74, 0.2, 345),
    matchInk: oklch(0.16, 0.02, 345),
    matchCurve: dark ? oklch(0.74, 0.2, 345) : oklch(0.53, 0.22, 350),
    path: dark ? oklch(0.72, 0.22, 25) : oklch(0.58, 0.24, 27),
    page: dark ? oklch(0.215, 0.008, 260) : [255, 255, 255],
    text: dark ? oklch(0.92, 0.005, 260) : oklch(0.24, 0.01, 260),
    muted: dark ? oklch(0.74, 0.012, 260) : oklch(0.47, 0.018, 260),
    line: dark ? oklch(0.33, 0.01, 260) : oklch(0.9, 0.005, 260),
    accent: dark ? oklch(0.72, 0.13, 255) : oklch(0.5, 0.19, 258),
    curve: {
      user: dark ? oklch(0.64, 0.125, 255) : oklch(0.7, 0.115, 255),
      kernel: dark ? oklch(0.69, 0.13, 65) : oklch(0.73, 0.14, 65),
      unnamed: dark ? oklch(0.52, 0.01, 260) : oklch(0.78, 0.006, 260),
      runnable: dark ? oklch(0.8, 0.13, 95) : oklch(0.86, 0.13, 95),
      waiting: dark ? oklch(0.36, 0.035, 255) : oklch(0.9, 0.035, 255),
    },
  };
}

/**
 * Returns a hash of a text: FNV-1a of its UTF-16 units.
 * @param {string} text
 * @returns {number} 32 bits.
 */
export function hash(text) {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return (value ^ (value >>> 15)) >>> 0;
}

/**
 * Returns the slot of each module: by the hash of its family, so that it mostly looks the same in
 * other recordings; heavier families choose first.
 * @param {string[]} modules Short names.
 * @param {ArrayLike<number>} weights
 * @returns {Uint8Array}
 */
export function slotsOf(modules, weights) {
  /** @type {Map<string, number>} */
  const families = new Map();
  modules.forEach((name, i) => {
    const family = familyOf(name);
    families.set(family, (families.get(family) ?? 0) + weights[i]);
  });
  const order = [...families].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  /** @type {Set<number>} */
  const taken = new Set();
  /** @type {Map<string, number>} */
  const slots = new Map();
  for (const [family] of order) {
    let slot = hash(family) % HUES;
    // The heaviest keep off each other's neighbours, too.
    const near = taken.size < 5 ? [0, 1, HUES - 1] : [0];
    for (let tries = 0; tries < HUES && taken.size < HUES; tries++) {
      if (!near.some((by) => taken.has((slot + by) % HUES))) break;
      slot = (slot + 5) % HUES;
    }
    taken.add(slot);
    slots.set(family, slot);
  }
  return Uint8Array.from(modules, (name) => slots.get(familyOf(name)) ?? 0);
}

/**
 * Returns the index of a change's colour in `Palette.change`.
 * @param {number} change As `changeOf` in filter.js returns: log2 of the ratio, 0 if by chance.
 * @returns {number}
 */
export function changeStep(change) {
  if (change === 0) return CHANGE_STEPS;
  const strength = Math.min(Math.abs(change) / Math.log2(5.7), 1);
  const step = Math.max(1, Math.round(strength * CHANGE_STEPS));
  return CHANGE_STEPS + (change < 0 ? -step : step);
}
