import assert from "node:assert/strict";
import { test } from "node:test";
import { filesError, filesOf, pathError, withEnding } from "../src/files.js";

test("paths", () => {
  for (const path of ["src/main.ts", "a", "a.b-c_d/e.tsx", "x".repeat(128), ".env", "...", "a/.b"]) {
    assert.equal(pathError(path), undefined, path);
  }
  for (const path of ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a b", "ä", "a\n", "x".repeat(129), "a\\b", "a:b"]) {
    assert.notEqual(pathError(path), undefined, path);
  }
});

test("endings", () => {
  for (const [typed, want] of [["src/util", "src/util.ts"], ["src/util.ts", "src/util.ts"], ["src/a.json", "src/a.json"], ["a/", "a/"], ["", ""]] as const) {
    assert.equal(withEnding(typed, "src/module.ts"), want);
  }
});

test("files", () => {
  const main = { path: "src/main.ts", source: "" };
  assert.equal(filesError([main]), undefined);
  assert.equal(filesError([{ ...main, source: "é".repeat(100_000) }]), undefined);
  assert.match(filesError([{ ...main, source: "é".repeat(100_000) + "x" }]) ?? "", /200,000 bytes/);
  assert.match(filesError([main, main]) ?? "", /same path/);
  assert.match(filesError([{ path: "a.ts", source: "" }]) ?? "", /src\/main\.ts is missing/);
  assert.match(filesError([main, ...Array.from({ length: 10 }, (_, i) => ({ path: `${i}`, source: "" }))]) ?? "", /At most 10/);
});

test("files of JSON have exactly the fields that are known", () => {
  assert.deepEqual(filesOf([{ path: "a", source: "b", more: 1 }]), [{ path: "a", source: "b" }]);
  for (const value of [undefined, null, {}, [], "a", [1], [[]], [{ path: 1, source: "" }], [{ path: "a" }]]) {
    assert.equal(filesOf(value), undefined);
  }
});
