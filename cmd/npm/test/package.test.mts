import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import * as imported from "gaol";

test("import and require return the same classes", () => {
  const required = createRequire(import.meta.url)("gaol") as typeof imported;
  assert.equal(imported.GaolError, required.GaolError);
});
