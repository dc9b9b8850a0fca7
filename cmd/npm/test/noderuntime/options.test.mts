import assert from "node:assert/strict";
import test from "node:test";
import { GaolError, NodeRuntime, type NodeRuntimeCreateOptions, Sidecar } from "gaol";
import { parseCreateOptions, sandboxOptions } from "#dist/noderuntime/options.js";

const rejections: [unknown, string][] = [
  [[], "want an object"],
  [{ memoryLimit: 64 }, "memoryLimit: unknown; want env, cwd, permissions, "],
  [{ tools: {} }, "tools: unknown"],
  [{ env: { A: 1 } }, 'env["A"]: want a string'],
  [{ env: { A: "\0" } }, 'env["A"]: want a string'],
  [{ cwd: "" }, "cwd: empty"],
  [{ files: { "/a": 1 } }, 'files["/a"]: want a Uint8Array'],
  [{ mounts: [{ guestPath: "/a" }] }, "mounts[0].hostPath: missing"],
  [{ mounts: [{ guestPath: "/a", hostPath: "/b", readonly: true }] }, "mounts[0].readonly: unknown"],
  [{ nodeModules: 1 }, "nodeModules: want a string"],
  [{ nodeModules: { guestPath: "/a" } }, "nodeModules.hostPath: missing"],
  [{ loopbackExemptPorts: [0] }, "loopbackExemptPorts[0]: want an integer from 1 to 65535"],
  [{ isolation: 1 }, "isolation: want a string"],
  [{ jsRuntime: { platform: "browser" } }, 'jsRuntime.platform: want "node"'],
  [{ jsRuntime: { allowedBuiltins: ["fs"] } }, "jsRuntime.allowedBuiltins: unknown"],
  [{ onBootTiming: 1 }, "onBootTiming: want a function"],
  [{ bindings: { "Not a name": { description: "", inputSchema: {}, handler() {} } } }, "want a name of letters, digits, - and _"],
  [{ bindings: { add: { description: "", inputSchema: {} } } }, 'bindings["add"].handler: missing'],
  [{ bindings: { add: { description: "", inputSchema: {}, handler() {}, timeoutMs: 300_001 } } }, 'bindings["add"].timeoutMs: want an integer from 0 to 300000'],
];

for (const [options, message] of rejections) {
  test(`options: ${JSON.stringify(options)}`, async () => {
    await assert.rejects(NodeRuntime.create(options as NodeRuntimeCreateOptions), (error: Error) => error instanceof GaolError && error.code === "invalid" && error.message.includes(message));
  });
}

test("options of the sandbox", () => {
  const options = sandboxOptions(parseCreateOptions({
    env: { A: "1" }, cwd: "/app", files: { "data/a.txt": "text", "/b": new Uint8Array([1]) }, loopbackExemptPorts: [3000], isolation: "runc",
    mounts: [{ guestPath: "/m", hostPath: "/h" }, { guestPath: "/w/", hostPath: "/h/../i", readOnly: false }], nodeModules: "/h/node_modules",
  }));
  assert.deepEqual(options, {
    env: { A: "1" }, cwd: "/app", files: { "/data/a.txt": "text", "/b": new Uint8Array([1]) }, hostPorts: [3000], isolation: "runc",
    mounts: [{ source: "/h", target: "/m", access: "ro" }, { source: "/i", target: "/w", access: "rw" }],
    nodeModules: { hostPath: "/h/node_modules", guestPath: "/tmp/node_modules" },
  });
  assert.deepEqual(sandboxOptions(parseCreateOptions({ nodeModules: { hostPath: "/h", guestPath: "/app/node_modules" } })).nodeModules, { hostPath: "/h", guestPath: "/app/node_modules" });
});

test("what has no effect warns once", async (t) => {
  const warnings: string[] = [];
  t.mock.method(process, "emitWarning", (text: string) => warnings.push(text));
  const sidecar = Sidecar.spawn({ anything: true });
  for (let i = 0; i < 2; i++) parseCreateOptions({ sidecar, commandsDir: "/x" });
  await sidecar.dispose();
  assert.deepEqual(warnings, ["NodeRuntime: Sidecar has no effect in gaol", "NodeRuntime: option sidecar has no effect in gaol", "NodeRuntime: option commandsDir has no effect in gaol"]);
});
