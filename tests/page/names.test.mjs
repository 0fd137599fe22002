// Names cleaned of what would deceive, and made shorter in steps.

import assert from "node:assert/strict";
import test from "node:test";
import { clean, familyOf, forms, SHOWN } from "../../report/src/picture/page/web/names.js";
import { amount, axisStep, digits, duration, large, percent, plain, size, thousands } from "../../report/src/picture/page/web/format.js";
import { HOSTILE } from "./models.mjs";

test("names get shorter in steps", () => {
  const known = [
    ["main", ["main"]],
    ["std::vector<std::pair<int, int>>::push_back(std::pair<int, int> const&)",
      ["std::vector<std::pair<int, int>>::push_back(std::pair<int, int> const&)", "std::vector::push_back", "vector::push_back", "push_back"]],
    ["<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
      ["<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend", "alloc::vec::Vec::extend", "Vec::extend", "extend"]],
    ["core::ops::function::FnOnce::call_once{{vtable.shim}}",
      ["core::ops::function::FnOnce::call_once{{vtable.shim}}", "core::ops::function::FnOnce::call_once", "FnOnce::call_once", "call_once"]],
    ["(anonymous namespace)::walk(int)", ["(anonymous namespace)::walk(int)", "(anonymous namespace)::walk", "walk"]],
    ["a::operator<<(b&)", ["a::operator<<(b&)", "a::operator<<", "operator<<"]],
    ["libc.so.6 (no name)", ["libc.so.6 (no name)"]],
    ["a::b::f::{closure#0}", ["a::b::f::{closure#0}", "b::f::{closure#0}", "f::{closure#0}"]],
    ["core::f::{{closure}}::h0123456789abcdef", ["core::f::{{closure}}::h0123456789abcdef", "core::f::{{closure}}", "f::{{closure}}"]],
    ["a::b::h0123456789abcdef", ["a::b::h0123456789abcdef", "a::b", "b"]],
  ];
  for (const [name, wanted] of known) assert.deepEqual(forms(String(name)), wanted);
});

test("no name is too hostile to be shortened, and quickly", () => {
  const begin = performance.now();
  for (const name of [...HOSTILE, "<".repeat(2000), "a<".repeat(999), "<a as ".repeat(300), "operator".repeat(200), "->".repeat(1000)]) {
    const all = forms(name);
    assert.ok(all.length >= 1 && all.length <= 4);
    for (let i = 1; i < all.length; i++) assert.ok(all[i].length < all[i - 1].length);
  }
  assert.ok(performance.now() - begin < 2000);
});

test("controls, direction marks, zero-width characters and lone surrogates are shown", () => {
  assert.equal(clean("a\u001b[31m\u0000\u007f"), "a␛[31m␀␡");
  assert.equal(clean("\u202eabc\u202c"), "⟨202E⟩abc⟨202C⟩");
  assert.equal(clean("a\u200b\ufeff\u2028\u2066\u0085"), "a⟨200B⟩⟨FEFF⟩⟨2028⟩⟨2066⟩⟨0085⟩");
  assert.equal(clean("x\ud800y\udc00"), "x⟨D800⟩y⟨DC00⟩");
  assert.equal(clean("𝕏é名"), "𝕏é名");
  assert.equal(clean("tag\u{e0041}"), "tag⟨E0041⟩");
});

test("what is shown is cut", () => {
  assert.equal(clean("x".repeat(5000), 10), "xxxxxxxxxx…");
  assert.equal(clean("𝕏".repeat(20), 10), "𝕏".repeat(10) + "…");
  assert.equal(clean("x".repeat(10), 10), "x".repeat(10));
  assert.equal([...forms("y".repeat(5000))[0]].length, SHOWN.box + 1);
});

test("modules keep their family over versions and hashes", () => {
  const known = [
    ["libLLVM.so.22.1-rust-1.95", "libLLVM"], ["librustc_driver-6108105cd1f2.so", "librustc_driver"],
    ["libc.so.6", "libc"], ["libc-2.36.so", "libc"], ["python3.11", "python3"], ["cc1", "cc1"],
    ["[kernel.kallsyms]", "[kernel.kallsyms]"], ["/usr/lib/libz.so.1", "libz"], ["app-0123456789abcdef", "app"], ["", ""],
  ];
  for (const [name, family] of known) assert.equal(familyOf(name), family);
  const begin = performance.now();
  familyOf("1.".repeat(100_000));
  assert.ok(performance.now() - begin < 500);
});

test("numbers have three significant digits and units", () => {
  const space = "\u00a0";
  assert.deepEqual([0.273, 1, 0.0000025, 0.999999, 0.0998, 0].map(percent),
    ["27.3", "100", "0.00025", "100", "9.98", "0"].map((text) => text + space + "%"));
  assert.deepEqual([119e9, 15.9e9, 257e6, 1.44e9, 999.9e6, 12_340, 7].map(duration),
    [`119${space}s`, `15.9${space}s`, `257${space}ms`, `1.44${space}s`, `1.00${space}s`, `12.3${space}µs`, `7.00${space}ns`]);
  assert.equal(thousands(2969961), "2,969,961");
  assert.equal(digits(1234.5), "1,235");
  assert.equal(plain(2), "2");
  assert.equal(plain(0.5), "0.5");
  assert.equal(large(1_234_567_890), `1.23${space}G`);
  assert.equal(size(383_000_000), `383${space}MB`);
  assert.equal(amount(1, "samples"), `1${space}sample`);
  assert.deepEqual([axisStep(60e9, 10), axisStep(3.06e9, 9), axisStep(7, 1)], [1e10, 5e8, 1e1]);
});
