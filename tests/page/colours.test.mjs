// Colours: contrast of every text in a box, distance of what must be seen, slots of modules.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { CHANGE_STEPS, changeStep, contrast, css, FILLS, HUES, oklch, palette, slotsOf } from "../../report/src/picture/page/web/colours.js";

const LEAST = 4.5;

for (const dark of [false, true]) {
  const colours = palette(dark);
  test(`text in boxes can be read (${dark ? "dark" : "light"})`, () => {
    assert.equal(colours.fills.length, FILLS);
    assert.equal(colours.change.length, 2 * CHANGE_STEPS + 1);
    for (const fill of [...colours.fills, ...colours.faded, ...colours.change]) {
      const found = contrast(fill, colours.ink);
      assert.ok(found >= LEAST, `${css(fill)}: ${found.toFixed(2)}`);
    }
    assert.ok(contrast(colours.match, colours.matchInk) >= LEAST);
    assert.ok(contrast(colours.page, colours.text) >= LEAST);
    assert.ok(contrast(colours.page, colours.muted) >= LEAST);
  });

  test(`a match and a change stand out (${dark ? "dark" : "light"})`, () => {
    for (const faded of colours.faded) assert.ok(contrast(faded, colours.match) > 2);
    const [less, more] = [colours.change[0], colours.change[2 * CHANGE_STEPS]];
    assert.ok(Math.hypot(...less.map((part, i) => part - more[i])) > 120);
  });
}

test("text outside boxes can be read: the variables of page.css", () => {
  const text = readFileSync(new URL("../../report/src/picture/page/web/page.css", import.meta.url), "utf8");
  for (const scheme of [1, 2]) {
    /** @param {string} name */
    const colour = (name) => {
      const hex = new RegExp(`--${name}: light-dark\\(#([0-9a-f]+), #([0-9a-f]+)\\)`).exec(text)?.[scheme] ?? "";
      const long = hex.length === 3 ? [...hex].map((char) => char + char).join("") : hex;
      assert.equal(long.length, 6, name);
      return /** @type {[number, number, number]} */ ([0, 2, 4].map((i) => parseInt(long.slice(i, i + 2), 16)));
    };
    for (const [ink, ground] of [["text", "page"], ["text", "around"], ["muted", "page"], ["muted", "around"],
      ["muted", "card"], ["muted", "chip"], ["text", "bar"], ["muted", "bar"], ["accent", "page"], ["on-accent", "accent"],
      ["warn-text", "warn"], ["more", "page"], ["less", "page"], ["more", "bar"], ["less", "bar"], ["match", "page"]]) {
      const found = contrast(colour(ink), colour(ground));
      assert.ok(found >= LEAST, `${ink} on ${ground}: ${found.toFixed(2)}`);
    }
  }
});

test("OKLCH is turned to RGB as browsers do", () => {
  assert.deepEqual(oklch(1, 0, 0), [255, 255, 255]);
  assert.deepEqual(oklch(0, 0, 0), [0, 0, 0]);
  assert.deepEqual(oklch(0.628, 0.2577, 29.23).map((part) => Math.round(part / 8)), [32, 0, 0]);
});

test("a module has the same slot wherever it is, and heavier ones choose first", () => {
  const modules = ["libc.so.6", "rustc", "cc1", "libLLVM.so.22.1"];
  const slots = slotsOf(modules, [5, 9, 3, 1]);
  assert.equal(new Set(slots).size, modules.length);
  const others = slotsOf(["libLLVM.so.21", "libc.so.6", "rustc"], [1, 2, 100]);
  assert.equal(others[2], slots[1]);
  const many = Array.from({ length: 100 }, (_, i) => `module${String.fromCharCode(97 + (i % 26))}${i}x`);
  for (const slot of slotsOf(many, many.map((_, i) => i))) assert.ok(slot < HUES);
});

test("a change is stronger the greater it is", () => {
  assert.equal(changeStep(0), CHANGE_STEPS);
  assert.equal(changeStep(0.01), CHANGE_STEPS + 1);
  assert.equal(changeStep(6), 2 * CHANGE_STEPS);
  assert.equal(changeStep(-2.6), 0);
});
