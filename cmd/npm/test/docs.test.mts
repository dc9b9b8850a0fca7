// The blocks of documentation that use this package compile.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";

const folder = path.resolve("build/docs");
const pages = ["README.md", "../../README.md", ...readdirSync("../../docs").filter((name) => name.endsWith(".md")).map((name) => `../../docs/${name}`)];

test("the programs of the documentation compile", () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  let programs = 0;
  for (const page of pages) {
    const text = readFileSync(page, "utf8");
    for (const [, code = ""] of text.matchAll(/^```typescript\n(.*?)^```$/gms)) {
      const older = code.replace(' from "ai";', ' from "ai6";'); // both versions of the AI SDK
      for (const version of new Set([code, older])) writeFileSync(path.join(folder, `${path.basename(page, ".md")}-${++programs}.mts`), version);
    }
  }
  assert(programs >= 8);
  // The declarations of the AI SDK need those of browsers.
  const options = { noEmit: true, declaration: false, skipLibCheck: true, noUnusedLocals: false, rootDir: "../.." };
  writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: options, include: ["."] }));
  const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});
