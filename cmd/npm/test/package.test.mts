import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import test from "node:test";
import * as imported from "gaol";

test("import and require return the same classes", () => {
  const required = createRequire(import.meta.url)("gaol") as typeof imported;
  assert.equal(imported.GaolError, required.GaolError);
});

test("other systems install the package, and learn that they need a URL", () => {
  const require = createRequire(import.meta.url);
  const { os, cpu } = require("gaol/package.json") as { os?: string[]; cpu?: string[] };
  assert.deepEqual([os, cpu], [undefined, undefined]); // npm refuses other systems
  const program = `Object.defineProperty(process, "platform", { value: "win32" }); delete process.getuid;
    require("gaol").run("1").catch((e) => console.log(e.name, e.code, e.message));`;
  const { GAOL_URL: _u, GAOL_SOCKET: _s, ...env } = process.env;
  const { stdout } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8", env });
  assert.match(stdout, /^ConnectionError no_server gaol: sandboxes need Linux, and this system is win32: set GAOL_URL and GAOL_TOKEN, /);
});
