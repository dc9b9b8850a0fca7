import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { load, loadPrevious, loadTheme, save, savePrevious, saveTheme, type Saved } from "../src/store.js";

let kept = new Map<string, string>();
beforeEach(() => {
  kept = new Map();
  const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
});

const program: Saved = { files: [{ path: "src/main.ts", source: "1" }], path: "src/main.ts", adapter: "none", permissions: "strict", timeoutMs: 1000 };

test("a program is kept", () => {
  assert.equal(load(), undefined);
  assert.equal(save(program), true);
  savePrevious({ ...program, adapter: "directive" });
  saveTheme("dark");
  assert.deepEqual(load(), program);
  assert.deepEqual(loadPrevious(), { ...program, adapter: "directive" });
  assert.equal(loadTheme(), "dark");
});

test("what is kept may have any form", () => {
  save(program);
  const [key = ""] = kept.keys();
  for (const text of ["", "null", "1", "{", "{}", '{"files":[]}', '{"files":[{"path":"../x","source":""}]}', '{"files":[{"path":"src/a.ts","source":""}]}']) {
    kept.set(key, text);
    assert.equal(load(), undefined, text);
  }
  kept.set(key, JSON.stringify({ files: program.files, path: 1, adapter: [], permissions: {}, timeoutMs: "x" }));
  assert.deepEqual(load(), { files: program.files, path: "" });
});

test("long programs are not kept", () => {
  assert.equal(save({ ...program, files: [{ path: "src/main.ts", source: "x".repeat(600_000) }] }), false);
  assert.equal(load(), undefined);
});

test("browsers may refuse to keep anything", () => {
  const refuse = (): never => {
    throw new Error("SecurityError");
  };
  Object.defineProperty(globalThis, "localStorage", { get: refuse, configurable: true });
  assert.equal(save(program), false);
  assert.equal(load(), undefined);
  assert.equal(loadTheme(), "");
});
