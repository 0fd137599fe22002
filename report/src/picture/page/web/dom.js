// Small helpers for the document. Texts only ever go in as text.

/**
 * Returns the element with an id, which page.html has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Returns the canvas with an id.
 * @param {string} id
 * @returns {HTMLCanvasElement}
 */
export function canvasOf(id) {
  const found = byId(id);
  if (!(found instanceof HTMLCanvasElement)) throw new Error(`#${id} is no canvas`);
  return found;
}

/**
 * Makes an element.
 * @param {string} tag With classes: `div.row.wide`.
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name ?? "div");
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * Makes a button.
 * @param {string} tag `button` with classes.
 * @param {string} text
 * @param {() => void} act
 * @param {Record<string, string>} attributes
 * @returns {HTMLElement}
 */
export function button(tag, text, act, attributes = {}) {
  const made = el(tag, { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

/**
 * Makes a small square of a colour.
 * @param {string} colour
 */
export function swatch(colour) {
  const made = el("span.swatch", { "aria-hidden": "true" });
  made.style.backgroundColor = colour;
  return made;
}

/**
 * Sets the length of a bar behind a figure.
 * @param {HTMLElement} bar
 * @param {number} part Of the whole length.
 * @returns {HTMLElement}
 */
export function setBar(bar, part) {
  bar.style.width = part > 0 ? Math.min(part, 1) * 100 + "%" : "0";
  return bar;
}

/**
 * Copies a text, and says so.
 * @param {{status: (text: string) => void}} app
 * @param {string} text
 */
export function copy(app, text) {
  const failed = () => app.status("The browser does not let this page copy.");
  if (!navigator.clipboard) failed();
  else navigator.clipboard.writeText(text).then(() => app.status("Copied."), failed);
}

/**
 * Sets the text of an element if it differs, so that nothing is laid out for nothing.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes a canvas as large as its place on the screen, in the screen's own pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D}
 */
export function sized(canvas, width, height) {
  const scale = globalThis.devicePixelRatio || 1;
  const pixels = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    canvas.width = pixels[0];
    canvas.height = pixels[1];
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) throw new Error("this browser has no canvas");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Widths of texts from a table of characters: measuring each text would be slow. */
export class TextWidths {
  /** @param {string} font */
  constructor(font) {
    this.font = font;
    /** @type {Map<number, number>} */
    this.widths = new Map();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} code
   * @returns {number}
   */
  ofCode(context, code) {
    let width = this.widths.get(code);
    if (width === undefined) {
      context.font = this.font;
      width = context.measureText(String.fromCodePoint(code)).width;
      this.widths.set(code, width);
    }
    return width;
  }

  /**
   * Returns a text if it fits, else null; or cut with "…" if it may be.
   * @param {CanvasRenderingContext2D} context
   * @param {string} text
   * @param {number} room
   * @param {boolean} mayCut
   * @returns {{text: string, width: number} | null}
   */
  fit(context, text, room, mayCut) {
    const dots = this.ofCode(context, 0x2026);
    let width = 0;
    let kept = 0;
    let keptWidth = 0;
    for (let at = 0; at < text.length; ) {
      const code = text.codePointAt(at) ?? 0;
      width += this.ofCode(context, code);
      at += code > 0xffff ? 2 : 1;
      if (width > room) {
        if (!mayCut || kept < 2) return null;
        return { text: text.slice(0, kept) + "…", width: keptWidth + dots };
      }
      if (width + dots <= room) {
        kept = at;
        keptWidth = width;
      }
    }
    return { text, width };
  }
}

/** Whether the user asked for less motion. */
export function isCalm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Whether the screen is that of a phone. */
export function isNarrow() {
  return matchMedia("(max-width: 759px)").matches;
}
