// A program that imports the installed package.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as gaol from "gaol";
import { codeTool } from "gaol/ai";
import { createSandbox } from "gaol/evaluate";
import { runInSandbox } from "gaol/snippets";
import { sandboxTools } from "gaol/tools";
import { schemas } from "gaol/tools/zod";

assert.equal(gaol.GaolError, createRequire(import.meta.url)("gaol").GaolError, "two copies");
const { value, exitCode } = await gaol.run("__return(6 * 7)");
assert.deepEqual([value, exitCode], [42, 0]);
assert.equal((await createSandbox({ add: (a, b) => a + b }).execute("add(1, 2)")).result, 3);
const { containerId } = await sandboxTools().sandbox_init.execute(schemas.sandbox_init.input.parse({}));
assert.equal((await sandboxTools().sandbox_exists.execute({ containerId, path: "/" })).exists, true);
assert.equal(codeTool().name, "run_code");
assert.deepEqual((await runInSandbox("export const n: number = 6 * 7")).facts, { n: 42 });
console.log("esm");
