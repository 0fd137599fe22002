// The address bar: holds the state of the view, so that Back works and a link shows the same.

import { formatState } from "./state.js";

/** @typedef {import("./state.js").State} State */

/** Delay before the address is written: browsers refuse hundreds of writes a minute. */
const ADDRESS_DELAY = 200;

/** Writes states into the address bar, and tells when the user changes it. */
export class Address {
  /** @param {(text: string) => void} onText Called with what follows the `#`. */
  constructor(onText) {
    this.written = location.hash.slice(1);
    this.pushes = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    const read = () => {
      const text = location.hash.slice(1);
      if (text === this.written) return;
      clearTimeout(this.timer);
      this.written = text;
      onText(text);
    };
    addEventListener("popstate", read);
    addEventListener("hashchange", read);
  }

  /**
   * Writes a state soon.
   * @param {State} state
   * @param {boolean} pushes Whether Back comes back to what was before.
   */
  write(state, pushes) {
    this.pushes ||= pushes;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const text = formatState(state);
      if (text !== this.written) {
        this.written = text;
        try {
          if (this.pushes) history.pushState(null, "", "#" + text);
          else history.replaceState(null, "", "#" + text);
        } catch {
          location.hash = text;
        }
      }
      this.pushes = false;
    }, ADDRESS_DELAY);
  }
}
