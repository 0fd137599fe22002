// The search: names that have a text, or fit an expression between slashes.

/** Finds names. */
export class Finder {
  /** @param {string[]} names Raw names of frames. */
  constructor(names) {
    this.names = names;
    /** Names in lower case, made at the first search. @type {string[]} */
    this.lower = [];
    this.error = "";
  }

  /**
   * Returns 1 for each frame whose raw name has a text, in any case; or fits a regular expression
   * between slashes, if that may be one.
   * @param {string} text
   * @param {boolean} [mayBeExpression]
   * @returns {Uint8Array}
   */
  find(text, mayBeExpression = false) {
    this.error = "";
    if (!mayBeExpression || !/^\/.+\/$/s.test(text)) {
      if (this.lower.length === 0) this.lower = this.names.map((name) => name.toLowerCase());
      const low = text.toLowerCase();
      return Uint8Array.from(this.lower, (name) => Number(name.includes(low)));
    }
    try {
      const expression = new RegExp(text.slice(1, -1), "i");
      return Uint8Array.from(this.names, (name) => Number(expression.test(name)));
    } catch {
      this.error = "not a regular expression";
      return new Uint8Array(this.names.length);
    }
  }
}
