import assert from "node:assert/strict";
import { test } from "node:test";
import { loadedFiles, frameOf } from "../src/frame.js";
import { marksOf } from "../src/marks.js";

const paths = new Set(["src/main.ts", "src/a.ts"]);

test("problems and the first position of other errors are marked", () => {
  const problem = { path: "src/a.ts", line: 1, column: 2, message: "no" };
  const errors = ["src/a.ts:1:2 — no", "Error: late\n    at f (src/main.ts:3:9)\n    at src/main.ts:5:1", "no position", "src/other.ts:1:1 — x"];
  assert.deepEqual(marksOf({ errors, problems: [problem, { ...problem, path: "src/other.ts" }] }, paths), [
    problem,
    { path: "src/main.ts", line: 3, column: 9, message: "Error: late" },
  ]);
});

test("marks are bounded", () => {
  const errors = Array.from({ length: 5000 }, (_, i) => `src/main.ts:${i + 1}:1 — no`);
  assert.equal(marksOf({ errors, problems: [] }, paths).length, 200);
});

test("a frame has the origin of its parent", () => {
  const frame = (query: string): unknown => frameOf(new URLSearchParams(query));
  assert.equal(frame("origin=https://a.example"), undefined);
  assert.deepEqual(frame("embed=1&origin=https://a.example&theme=dark"), { origin: "https://a.example", theme: "dark" });
  for (const origin of ["", "*", "null", "https://a.example/", "https://a.example/x", "javascript:1", "a.example", "file:///"]) {
    assert.deepEqual(frame(`embed=1&origin=${encodeURIComponent(origin)}&theme=x`), { origin: "", theme: "" }, origin);
  }
});

test("a frame loads only messages of the one kind", () => {
  const main = [{ path: "src/main.ts", source: "1" }];
  assert.deepEqual(loadedFiles({ type: "gaol:load", source: "1" }), main);
  assert.deepEqual(loadedFiles({ type: "gaol:load", files: main }), main);
  for (const message of [
    null,
    "gaol:load",
    {},
    { type: "gaol:run", source: "1" },
    { type: "gaol:load" },
    { type: "gaol:load", source: 1 },
    { type: "gaol:load", source: "1", files: main },
    { type: "gaol:load", files: [{ path: "../x", source: "" }] },
    { type: "gaol:load", source: "x".repeat(200_001) },
  ]) {
    assert.equal(loadedFiles(message), undefined);
  }
});
