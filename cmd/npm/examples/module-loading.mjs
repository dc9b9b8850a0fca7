// Programs import Node's modules, packages of the host, and files of the sandbox.
import { fileURLToPath } from "node:url";
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create({
  nodeModules: fileURLToPath(new URL("packages", import.meta.url)), // the guest's /tmp/node_modules
  files: { "/tmp/lib/double.mjs": "export const double = (n) => 2 * n;" },
});
try {
  const { stdout } = await runtime.exec(`
    import { createHash } from "node:crypto";
    import { createRequire } from "node:module";
    import { greet } from "greeting";
    import { double } from "./lib/double.mjs";
    console.log(greet("package"));
    console.log("double:", double(21));
    console.log("sha256:", createHash("sha256").update("gaol").digest("hex").slice(0, 8));
    console.log("require:", createRequire(import.meta.url)("node:path").basename("/a/b.txt"));
    await import("not-installed").catch((error) => console.log(error.code));
  `);
  process.stdout.write(stdout);
} finally {
  await runtime.dispose();
}
