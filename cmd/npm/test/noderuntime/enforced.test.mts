import assert from "node:assert/strict";
import test from "node:test";
import { NodeRuntime, type NodeRuntimeCreateOptions } from "gaol";

async function inRuntime<T>(options: NodeRuntimeCreateOptions, use: (rt: NodeRuntime) => Promise<T>): Promise<T> {
  const rt = await NodeRuntime.create(options);
  try {
    return await use(rt);
  } finally {
    await rt.dispose();
  }
}

const code = (expression: string): string => `try { ${expression}; console.log("allowed") } catch (e) { console.log(e.cause?.code ?? e.code ?? e.message) }`;

test("the documentation's vault is closed", async () => {
  await inRuntime({
    files: { "/vault/key": "secret", "/data/a": "text" },
    permissions: { fs: { default: "allow", rules: [{ mode: "deny", operations: ["*"], paths: ["/vault/**"] }] } },
  }, async (rt) => {
    const read = (file: string): string => code(`(await import("node:fs")).readFileSync("${file}")`);
    assert.equal((await rt.exec(read("/data/a"))).stdout, "allowed\n");
    assert.equal((await rt.exec(read("/vault/key"))).stdout, "EACCES\n");
    assert.equal((await rt.exec(read("/data/../vault/key"))).stdout, "EACCES\n");
    assert.equal((await rt.execCommand("cat", ["/proc/self/root/vault/key"])).exitCode, 1);
  });
});

test("a folder and its content may be named in one list", async () => {
  await inRuntime({ permissions: { fs: { rules: [{ mode: "allow", operations: ["*"], paths: ["/workspace", "/workspace/**"] }] } } }, async (rt) => {
    const write = (file: string): string => code(`(await import("node:fs")).writeFileSync("${file}", "x")`);
    assert.equal((await rt.exec(write("/workspace/a"))).stdout, "allowed\n");
    assert.equal((await rt.exec(write("/tmp/a"))).stdout, "EACCES\n");
  });
});

test("rules that the kernel cannot enforce are rejected with the nearest", async () => {
  const fs = { default: "allow" as const, rules: [{ mode: "deny" as const, operations: ["write"], paths: ["/etc/**"] }] };
  await assert.rejects(NodeRuntime.create({ permissions: { fs } }), { code: "invalid", message: /fs\.rules\[0\]\.paths\[0\].*nearest: deny everything there/s });
  await assert.rejects(NodeRuntime.create({ permissions: { fs: { rules: [{ mode: "allow", paths: ["/workspace"] }] } } }), { message: /it is a folder.*nearest: \/workspace\/\*\*/s });
});

test("the network is the runtime's own localhost by default, and nothing if it is denied", async () => {
  await inRuntime({ permissions: { network: "deny" } }, async (rt) => {
    assert.match((await rt.exec(code(`await fetch("http://127.0.0.1:3999/")`))).stdout, /^(EACCES|EPERM)\n$/);
  });
  await inRuntime({}, async (rt) => {
    assert.equal((await rt.exec(code(`await fetch("http://127.0.0.1:3999/")`))).stdout, "ECONNREFUSED\n");
    assert.doesNotMatch((await rt.exec(code(`await fetch("http://example.com/")`))).stdout, /allowed/);
  });
});

test("variables that rules deny are absent", async () => {
  const permissions = { env: { default: "allow" as const, rules: [{ mode: "deny" as const, operations: ["read"], patterns: ["SECRET_*"] }] } };
  await inRuntime({ env: { SECRET_KEY: "1", PUBLIC: "2" }, permissions }, async (rt) => {
    assert.deepEqual((await rt.run("__return([process.env.SECRET_KEY ?? null, process.env.PUBLIC])")).value, [null, "2"]);
  });
});

test("programs are allowed by name", async () => {
  const permissions = { childProcess: { default: "deny" as const, rules: [{ mode: "allow" as const, operations: ["spawn"], patterns: ["sh", "no-such-program"] }] } };
  await inRuntime({ permissions }, async (rt) => {
    const start = (program: string): string => `import { spawnSync } from "node:child_process"; const r = spawnSync("${program}", ["-c", "true"]); console.log(r.error?.code ?? "allowed")`;
    assert.equal((await rt.exec(start("sh"))).stdout, "allowed\n");
    assert.equal((await rt.exec(start("node"))).stdout, "EACCES\n");
  });
  await inRuntime({ permissions: { childProcess: "deny" } }, async (rt) => {
    assert.match((await rt.exec(`import { spawnSync } from "node:child_process"; console.log(spawnSync("sh").error?.code)`)).stdout, /^(EPERM|EACCES)\n$/);
  });
});
