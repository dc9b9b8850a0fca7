// A program that requires the installed package.
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const path = require("node:path");
const gaol = require("gaol");
const { codeTool } = require("gaol/ai");
const { createSandbox } = require("gaol/evaluate");
const { runInSandbox } = require("gaol/snippets");
const { sandboxTools } = require("gaol/tools");
const { schemas } = require("gaol/tools/zod");

(async () => {
  const { value, exitCode } = await gaol.run("__return(6 * 7)");
  assert.deepEqual([value, exitCode], [42, 0]);
  assert.equal((await createSandbox({ add: (a, b) => a + b }).execute("add(1, 2)")).result, 3);
  assert.equal(Object.keys(sandboxTools()).length, Object.keys(schemas).length);
  assert.equal(codeTool().name, "run_code");
  assert.deepEqual((await runInSandbox("export const n: number = 6 * 7")).facts, { n: 42 });
  const runc = path.join(path.dirname(require.resolve(`@gaol/linux-${process.arch}/bin/gaol`)), "runc");
  assert.match(execFileSync(runc, ["--version"], { encoding: "utf8" }), /^runc version /);
  console.log("cjs");
})();
