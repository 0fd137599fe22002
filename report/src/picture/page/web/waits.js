// Long waits: what threads waited for, and who ended it.

import { Column, textsOf } from "./decode.js";

/**
 * A wait of a thread, in steps.
 * @typedef {object} Wait
 * @property {number} thread
 * @property {number} from
 * @property {number} woken
 * @property {number} to
 * @property {string} what Kind and object.
 * @property {string} wokenBy Empty if not known.
 * @property {string} wakerStack Functions of the waker's callchain, a line each, innermost first; empty if not known.
 */

/**
 * Reads the waits, by threads and in order of time.
 * @param {Column} column Numbers of waits and texts; of each wait: thread less the one before's, distance from that of the
 *   thread before it, lengths until the wake and from then on in 256ths of a step, and three texts.
 * @param {Uint8Array} joined Texts.
 * @param {number} threads
 * @returns {Wait[]}
 */
export function readWaits(column, joined, threads) {
  const count = column.next();
  const texts = textsOf("waited", joined, column.next());
  if (count > column.bytes.length) column.fail("has too many waits");
  /** @type {Wait[]} */
  const waits = [];
  let [thread, from] = [0, 0];
  for (let i = 0; i < count; i++) {
    const further = column.next();
    if (further > 0) from = 0;
    thread += further;
    if (thread >= threads) column.fail("has no such thread");
    from += column.next();
    const woken = from + column.next();
    const to = woken + column.next();
    const [what, wokenBy, wakerStack] = [texts[column.next()], texts[column.next()], texts[column.next()]];
    if (what === undefined || wokenBy === undefined || wakerStack === undefined) column.fail("has no such text");
    else waits.push({ thread, from: from / 256, woken: woken / 256, to: to / 256, what, wokenBy, wakerStack });
  }
  column.end();
  return waits;
}

/**
 * Returns the wait of a thread that has the most of a time; `null` if none has half of it.
 * @param {import("./model.js").Recording} recording
 * @param {number} tid
 * @param {number} side
 * @param {{from: number, to: number}} time In steps.
 * @returns {Wait | null}
 */
export function waitAt({ waits, threads }, tid, side, time) {
  let most = (time.to - time.from) / 2;
  let found = null;
  for (const wait of waits) {
    if (threads.tid[wait.thread] !== tid || threads.side[wait.thread] !== side) continue;
    const shared = Math.min(wait.to, time.to) - Math.max(wait.from, time.from);
    if (shared > most) [most, found] = [shared, wait];
  }
  return found;
}
