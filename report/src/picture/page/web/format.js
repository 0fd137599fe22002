// Numbers as people read them: three significant digits, units, thousands.

/** A space that does not break the line. */
const SPACE = "\u00a0";

/**
 * Returns a number with three significant digits (two below one).
 * @param {number} value
 * @returns {string}
 */
export function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return thousands(Math.round(value));
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.995) return value.toFixed(2);
  const places = 1 - Math.floor(Math.log10(size));
  return value.toFixed(Math.min(places, 12));
}

/**
 * Returns a whole number with commas between thousands.
 * @param {number} value
 * @returns {string}
 */
export function thousands(value) {
  const text = String(Math.round(Math.abs(value)));
  let out = "";
  for (let i = 0; i < text.length; i++) {
    if (i > 0 && (text.length - i) % 3 === 0) out += ",";
    out += text.charAt(i);
  }
  return value < 0 ? "−" + out : out;
}

/**
 * Returns a part of one as a percentage.
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
  return Number.isFinite(share) ? digits(share * 100) + SPACE + "%" : "–";
}

/**
 * Returns a part of a whole as a percentage; nothing of nothing is 0 %.
 * @param {number} part
 * @param {number} whole
 * @returns {string}
 */
export function shareOf(part, whole) {
  return percent(whole > 0 ? part / whole : 0);
}

/**
 * Returns nanoseconds in the unit that suits them.
 * @param {number} ns
 * @returns {string}
 */
export function duration(ns) {
  const size = Math.abs(ns);
  if (size === 0) return "0" + SPACE + "s";
  if (size >= 0.9995e9) return digits(ns / 1e9) + SPACE + "s";
  if (size >= 0.9995e6) return digits(ns / 1e6) + SPACE + "ms";
  if (size >= 0.9995e3) return digits(ns / 1e3) + SPACE + "µs";
  return digits(ns) + SPACE + "ns";
}

/**
 * Returns a large count with a decimal prefix.
 * @param {number} value
 * @returns {string}
 */
export function large(value) {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let rest = value;
  let step = 0;
  while (Math.abs(rest) >= 999.5 && step < prefixes.length - 1) {
    rest /= 1000;
    step += 1;
  }
  const text = step === 0 ? digits(Math.round(rest)) : digits(rest) + SPACE;
  return text + prefixes[step];
}

/**
 * Returns a number of bytes with a binary-free decimal unit.
 * @param {number} bytes
 * @returns {string}
 */
export function size(bytes) {
  const text = large(bytes);
  return text.includes(SPACE) ? text + "B" : text + SPACE + "B";
}

/**
 * Returns what a weight stands for: time, events or samples.
 * @param {number} weight
 * @param {"ns" | "samples" | "events"} unit
 * @returns {string}
 */
export function amount(weight, unit) {
  if (unit === "ns") return duration(weight);
  if (unit === "events") return large(weight) + SPACE + "events";
  return counted(weight, "sample");
}

/**
 * Returns a count with its noun: "1 sample", "2,000 samples".
 * @param {number} count
 * @param {string} noun
 * @returns {string}
 */
export function counted(count, noun) {
  return thousands(count) + SPACE + noun + (count === 1 ? "" : "s");
}

/**
 * Returns a number without zeros at its end: for axes.
 * @param {number} value
 */
export function plain(value) {
  return digits(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/**
 * Returns the distance between marks of an axis: 1, 2 or 5 times a power of ten.
 * @param {number} length
 * @param {number} marks The most marks that have room.
 * @returns {number}
 */
export function axisStep(length, marks) {
  const least = length / Math.max(marks, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}
