// Columns against known values, and a recording against the model that it was made from.

import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync } from "node:zlib";
import { Column, DamagedPage, fromBase64, inflate, textsOf } from "../../report/src/picture/page/web/decode.js";
import { Recording } from "../../report/src/picture/page/web/model.js";
import { columnsOf, leb128 } from "./made.mjs";
import { HOSTILE, hostile } from "./models.mjs";

/** @param {Map<string, Uint8Array>} columns */
export function opened(columns) {
  return Recording.open(async (name) => columns.get(name) ?? null);
}

test("LEB128 numbers are read, also above 2^32", () => {
  const bytes = Uint8Array.of(0x00, 0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f,
    0x80, 0x80, 0x80, 0x80, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f);
  const known = [0, 127, 128, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];
  const column = new Column("known", bytes);
  assert.deepEqual(known.map(() => column.next()), known);
  column.end();
  assert.deepEqual([...new Column("known", bytes).fill(new Float64Array(6))], known);
  assert.deepEqual(leb128(known), bytes);
});

test("a column that ends early, goes on or has a number too large says so", () => {
  assert.throws(() => new Column("x", Uint8Array.of(0x80)).next(), /column x ends early/);
  assert.throws(() => new Column("x", Uint8Array.of(1)).fill(new Uint32Array(2)), /column x ends early/);
  assert.throws(() => new Column("x", Uint8Array.of(1)).end(), /column x is longer/);
  assert.throws(() => new Column("x", new Uint8Array(20).fill(0xff)).next(), /too large/);
});

test("base64 and deflate are undone", async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * i) % 251);
  const packed = deflateRawSync(bytes).toString("base64");
  assert.deepEqual(await inflate(fromBase64(packed)), bytes);
});

test("texts are split at NUL; none, one empty, and a byte order mark", () => {
  const utf8 = new TextEncoder();
  assert.deepEqual(textsOf("t", utf8.encode("a\0\0b"), 3), ["a", "", "b"]);
  assert.deepEqual(textsOf("t", new Uint8Array(), 0), []);
  assert.deepEqual(textsOf("t", new Uint8Array(), 1), [""]);
  assert.deepEqual(textsOf("t", utf8.encode("\ufeffa"), 1), ["\ufeffa"]);
  assert.throws(() => textsOf("t", utf8.encode("a"), 2), DamagedPage);
});

test("a tree of three nodes is read from bytes written by hand", async () => {
  const utf8 = new TextEncoder();
  const meta = {
    format: 1, step: 16, steps: 300, cpus: 2, modules: [{ name: "m", path: "/m" }], nodes: 3, names: 3,
    commands: 1, threads: 1, sides: [{}],
    events: [{ name: "e", cells: 2, entries: 2, quantum: 5, unit_weight: 1, samples: [7], period: [35] }],
  };
  const recording = await opened(new Map([
    ["meta", utf8.encode(JSON.stringify(meta))], ["names", utf8.encode("a\0b\0c")],
    ["commands", utf8.encode("cmd")], ["frames", Uint8Array.of(0, 2, 1, 1, 1, 2)],
    ["threads", Uint8Array.of(0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x08)],
    // a, below it b and c.
    ["pops", Uint8Array.of(0, 0, 1)], ["sibs", Uint8Array.of(0, 1, 1)],
    ["cells0", Uint8Array.of(2, 3, 0x80, 0x02, 0, 2)],
    ["lens0", Uint8Array.of(0, 0, 2)], ["gaps0", Uint8Array.of(0, 0)], ["counts0", Uint8Array.of(6, 0)],
    ["sums0", Uint8Array.of(0, 0, 7, 35, 0, 0, 0, 0, 7, 35, 7, 35)],
  ]));
  assert.deepEqual([...recording.nodeFrame.slice(1)], [0, 1, 2]);
  assert.deepEqual([...recording.nodeParent], [-1, 0, 1, 1]);
  assert.deepEqual([...recording.nodeEnd], [4, 4, 3, 4]);
  assert.deepEqual([...recording.kind], [2, 1, 1]);
  assert.deepEqual([...recording.module], [0, 1, 1]);
  assert.equal(recording.threads.pid[0], -1);
  assert.equal(recording.threads.tid[0], 2 ** 31 - 1);
  const event = await recording.event(0);
  assert.deepEqual([...event.cellStep], [3, 259]);
  assert.deepEqual([...event.cellCpu], [0, 2]);
  assert.deepEqual([...event.tree.start], [0, 0, 0, 0, 2]);
  assert.deepEqual([...event.tree.cell], [0, 1]);
  assert.deepEqual([...event.tree.count], [7, 1]);
  assert.deepEqual([...event.sums[0]].slice(8), [7, 35, 7, 35]);
});

test("hostile names come out as they went in", async () => {
  const recording = await opened(columnsOf(hostile()));
  for (const name of HOSTILE) assert.ok(recording.names.includes(name), JSON.stringify(name.slice(0, 40)));
});

test("every column that is cut or has a wrong number ends in a sentence", async () => {
  const columns = columnsOf(hostile());
  for (const [name, bytes] of columns) {
    for (const damaged of [bytes.slice(0, bytes.length >> 1), new Uint8Array(), new Uint8Array(bytes.length).fill(0x7f)]) {
      if (name === "code" && damaged.length === 0) continue;
      const copy = new Map(columns).set(name, damaged);
      try {
        const recording = await opened(copy);
        for (let i = 0; i < recording.meta.events.length; i++) await recording.event(i);
        assert.ok(/^(weights|sums|counts|names|commands|frames|threads|lens|cells)/.test(name), `${name} was not noticed`);
      } catch (error) {
        assert.ok(error instanceof DamagedPage, `${name}: ${error}`);
      }
    }
  }
});
