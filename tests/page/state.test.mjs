// The address bar: read like a file.

import assert from "node:assert/strict";
import test from "node:test";
import { formatState, parseState, State } from "../../report/src/picture/page/web/state.js";
import { HOSTILE } from "./models.mjs";

const LIMITS = { events: 2, sides: 2, steps: 100, names: 50, groups: 10 };

test("a state survives the address", () => {
  const state = new State();
  state.event = 1;
  state.side = 1;
  state.tab = "functions";
  state.lanes = "thread";
  state.by = "none";
  state.inverted = true;
  state.add({ kind: "idle" });
  state.add({ kind: "time", from: 3, to: 100 });
  state.add({ kind: "lane", lane: "process", key: 4711 });
  state.add({ kind: "through", frame: 7 });
  state.add({ kind: "through", frame: 8 });
  state.add({ kind: "only", text: "a&b=c #%\u202e" });
  state.compare = true;
  state.perSecond = true;
  state.search = "über & <b>";
  state.selected = 49;
  state.sort = "change";
  state.zoom = [51, 3, 9];
  assert.deepEqual(parseState(formatState(state), LIMITS), state);
  assert.equal(formatState(new State()), "");
  assert.deepEqual(parseState("", LIMITS), new State());
});

test("whatever does not fit is ignored", () => {
  const bad = [
    "event=2", "event=-1", "event=1e0", "event=0x1", "event= 1", "side=2", "tab=evil", "tab=__proto__", "lanes=none", "by=x",
    "inverted=true", "time=5-5", "time=9-3", "time=0-102", "time=1-2-3", "time=1", "time=-1-5", "time=a-b", "time=0-1.5",
    "lane=thread", "lane=evil:1", "lane=thread:x", "lane=thread:99999999999999999999", "through=50", "through=", "f=50", "f=-1",
    "sort=constructor", "zoom=1.x", "zoom=99", "zoom=", "only=", "%", "=", "&&&", "search", "f=%zz", "only=%E0%A4%A",
    "compare=1", "toString=1", "__proto__=1", "filters=1",
  ];
  for (const text of bad) assert.deepEqual(parseState(text, LIMITS), new State(), text);
  assert.deepEqual(parseState(bad.join("&"), LIMITS), new State());
});

test("no address is too long or too hostile", () => {
  for (const name of HOSTILE) {
    const state = parseState(`search=${encodeURIComponent(name)}&${name}`, LIMITS);
    assert.ok(state.search.length <= 500);
  }
  assert.ok(parseState("through=1&".repeat(10_000), LIMITS).filters.length <= 12);
  assert.ok(parseState("zoom=" + "1.".repeat(9_000) + "1", LIMITS).zoom.length <= 300);
  const many = Array.from({ length: 40 }, (_, i) => `through=${i}`).join("&");
  assert.equal(parseState(many, LIMITS).filters.length, 12);
});

test("an expression in the address is only text", () => {
  assert.equal(parseState("search=/(a%2B)%2B$/", LIMITS).typed, false);
});

test("a filter of a kind takes the other's place, and keeps its order", () => {
  const state = new State();
  state.add({ kind: "time", from: 1, to: 2 });
  state.add({ kind: "idle" });
  state.add({ kind: "time", from: 5, to: 6 });
  assert.deepEqual(state.filters, [{ kind: "time", from: 5, to: 6 }, { kind: "idle" }]);
  state.compare = true;
  state.remove(state.filters[0]);
  assert.equal(state.compare, false);
});
