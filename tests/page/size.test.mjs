// The page without data: small enough to be sent along with each recording.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { joined, MODULES, pageOf } from "./made.mjs";

/** Bytes of a page without data, as large as it may be. */
const LARGEST = 190_000;

const WEB = new URL("../../report/src/picture/page/web/", import.meta.url);

test("the page itself is small", () => {
  const size = Buffer.byteLength(pageOf(new Map()));
  assert.ok(size < LARGEST, `${size} bytes`);
});

test("every module is joined, once, and each text stands on one line", () => {
  const files = readdirSync(WEB).filter((name) => name.endsWith(".js")).map((name) => name.slice(0, -3));
  assert.deepEqual([...MODULES].sort(), files.sort());
  for (const name of MODULES) {
    for (const line of readFileSync(new URL(name + ".js", WEB), "utf8").split("\n")) {
      assert.equal((line.match(/`/g)?.length ?? 0) % 2, 0, `${name}: ${line}`);
      if (line.startsWith("import")) assert.match(line, /^import \{ [\w, ]+ \} from "\.\/\w+\.js";$/);
    }
    assert.doesNotMatch(joined(name), /^(import|export)\b|\/\*\*\n|<\/script|<!--/m);
  }
});

test("no two modules declare the same name", () => {
  const seen = new Map();
  for (const name of MODULES) {
    for (const [, declared] of readFileSync(new URL(name + ".js", WEB), "utf8")
      .matchAll(/^(?:export )?(?:async )?(?:function|class|const|let) (\w+)/gm)) {
      assert.ok(!seen.has(declared), `${declared}: ${seen.get(declared)} and ${name}`);
      seen.set(declared, name);
    }
  }
});
