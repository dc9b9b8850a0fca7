import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { NodeRuntime, type BindingDefinition, type NodeRuntimeCreateOptions } from "gaol";
import { z } from "zod";

async function create(t: TestContext, options: NodeRuntimeCreateOptions): Promise<NodeRuntime> {
  const rt = await NodeRuntime.create(options);
  t.after(() => rt.dispose());
  return rt;
}

const weather: BindingDefinition = {
  description: "Looks up a temperature",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  commandAliases: ["weather"],
  handler: ({ city }: { city: string }) => {
    if (city === "Atlantis") throw new Error("no such city");
    return { city, degrees: 21 };
  },
};

test("programs call bindings, and get promises", async (t) => {
  const rt = await create(t, { bindings: { "get-weather": weather } });
  const { value, stderr } = await rt.run(`
    let timer = false;
    setTimeout(() => (timer = true), 0);
    const call = callBinding("get-weather", { city: "Tokyo" });
    const isPromise = call instanceof Promise;
    const both = await Promise.all([call, callBinding("weather", { city: "Oslo" })]);
    const errors = await Promise.all([callBinding("get-weather", {}), callBinding("get-weather", { city: "Atlantis" }), callBinding("nothing")].map((p) => p.catch((e) => e.message)));
    while (!timer) await new Promise(setImmediate);
    __return({ isPromise, both, errors });
  `);
  assert.deepEqual(value, {
    isPromise: true,
    both: [{ city: "Tokyo", degrees: 21 }, { city: "Oslo", degrees: 21 }],
    errors: ["input of get-weather: $.city: missing required property", "no such city", 'unknown binding "nothing"'],
  }, stderr);
  assert.deepEqual(await rt.callBinding("get-weather", { city: "Rome" }), { city: "Rome", degrees: 21 });
});

test("calls overlap", async (t) => {
  const waiting: (() => void)[] = [];
  const rt = await create(t, {
    bindings: {
      meet: {
        description: "Waits for a second call",
        inputSchema: {},
        handler: () => new Promise<string>((resolve) => {
          waiting.push(() => resolve("met"));
          if (waiting.length === 2) for (const wake of waiting) wake();
        }),
      },
    },
  });
  assert.deepEqual((await rt.run("__return(await Promise.all([callBinding('meet'), callBinding('meet')]))")).value, ["met", "met"]);
});

test("bindings are commands on the PATH", async (t) => {
  const rt = await create(t, { bindings: { "get-weather": weather, sum: { description: "", inputSchema: z.object({ numbers: z.array(z.number()) }), handler: ({ numbers }: { numbers: number[] }) => numbers.reduce((a, b) => a + b, 0) } } });
  const { stdout } = await rt.exec(`
    import { execFileSync, spawnSync } from "node:child_process";
    const input = JSON.stringify({ city: "Tokyo" });
    console.log(JSON.parse(execFileSync("get-weather", ["get-weather", "--json", input])).result.degrees);
    console.log(execFileSync("get-weather", ["--json", input]).toString().trim());
    console.log(execFileSync("weather", ["--city", "Oslo"]).toString().trim());
    console.log(spawnSync("sh", ["-c", "sum --numbers 1 --numbers 2"]).stdout.toString().trim());
    const failed = spawnSync("get-weather", ["--json", "{}"]);
    console.log(failed.status, failed.stderr.toString().trim());
  `);
  assert.deepEqual(stdout.split("\n"), ["21", '{"ok":true,"result":{"city":"Tokyo","degrees":21}}', '{"ok":true,"result":{"city":"Oslo","degrees":21}}', '{"ok":true,"result":3}', "1 input of get-weather: $.city: missing required property", ""]);
  assert.equal((await rt.execCommand("get-weather", ["--city", "Bern"])).stdout, '{"ok":true,"result":{"city":"Bern","degrees":21}}\n');
});

test("bindings are added while a program is in progress", async (t) => {
  const rt = await create(t, {});
  let output = "";
  const child = await rt.spawn(`
    import { execFileSync } from "node:child_process";
    process.stdin.once("data", async () => {
      console.log(await callBinding("late"), execFileSync("late").toString().trim());
      process.exit();
    });
  `, { onStdout: (piece) => (output += new TextDecoder().decode(piece)) });
  const late = { description: "", inputSchema: {}, handler: () => 5 };
  await rt.registerBindings({ late });
  child.writeStdin("now");
  assert.equal(await child.wait(), 0);
  assert.equal(output, '5 {"ok":true,"result":5}\n');
  await assert.rejects(rt.registerBindings({ late }), { code: "conflict" });
});

test("the scope binding decides before the handler", async (t) => {
  let calls = 0;
  const counting = { ...weather, commandAliases: [], handler: () => ++calls };
  const rt = await create(t, { bindings: { add: counting, "delete-file": counting }, permissions: { binding: { default: "deny", rules: [{ mode: "allow", patterns: ["add"] }] } } });
  const { value } = await rt.run(`
    import { spawnSync } from "node:child_process";
    const input = { city: "x" };
    const denied = await callBinding("delete-file", input).catch((e) => e.message);
    __return([denied, spawnSync("delete-file", ["--city", "x"]).stderr.toString(), await callBinding("add", input)]);
  `);
  assert.deepEqual(value, ["blocked by binding.invoke policy for delete-file", "blocked by binding.invoke policy for delete-file\n", 1]);
});

/** Returns a temporary folder. */
function folder(t: TestContext): string {
  const dir = mkdtempSync(path.join(tmpdir(), "gaol-npm-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

function addPackage(modules: string): void {
  mkdirSync(path.join(modules, "tiny-pad"), { recursive: true });
  writeFileSync(path.join(modules, "tiny-pad", "package.json"), '{"name":"tiny-pad","version":"1.2.3","main":"pad.js"}');
  writeFileSync(path.join(modules, "tiny-pad", "pad.js"), "module.exports = (text) => '[' + text + ']';");
}

test("programs import packages of the host", async (t) => {
  const modules = path.join(folder(t), "node_modules");
  addPackage(modules);
  const rt = await create(t, { nodeModules: modules });
  assert.equal((await rt.exec("import pad from 'tiny-pad'; console.log(pad('x'), import.meta.resolve('tiny-pad'))")).stdout, "[x] file:///tmp/node_modules/tiny-pad/pad.js\n");
  assert.match((await rt.exec("import fs from 'node:fs'; fs.writeFileSync('/tmp/node_modules/tiny-pad/pad.js', '')")).stderr, /EROFS|EACCES/);
  const elsewhere = await create(t, { nodeModules: { hostPath: modules, guestPath: "/app/node_modules" }, files: { "/app/main.mjs": "import pad from 'tiny-pad'; console.log(pad('app'))" } });
  assert.equal((await elsewhere.execCommand("node", ["/app/main.mjs"])).stdout, "[app]\n");
});

test("folders of the host are mounted", async (t) => {
  const dir = folder(t);
  writeFileSync(path.join(dir, "a.txt"), "text");
  const rt = await create(t, { mounts: [{ guestPath: "/data", hostPath: dir }, { guestPath: "/out", hostPath: folder(t), readOnly: false }] });
  assert.equal((await rt.exec("import fs from 'node:fs'; console.log(fs.readFileSync('/data/a.txt', 'utf8')); try { fs.writeFileSync('/data/b', '') } catch (e) { console.log(e.code) } fs.writeFileSync('/out/c', '1'); console.log(fs.readFileSync('/out/c', 'utf8'))")).stdout, "text\nEROFS\n1\n");
  assert.equal(readFileSync(path.join(dir, "a.txt"), "utf8"), "text");
});

test("a port of the host is reached, and no other", async (t) => {
  const servers = [createServer((_, response) => response.end("host")), createServer((_, response) => response.end("other"))];
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
  }
  const [port, other] = servers.map((s) => (s.address() as AddressInfo).port);
  const rt = await create(t, { permissions: { network: "allow" }, loopbackExemptPorts: [port ?? 0] });
  const get = (p: number | undefined): string => `await fetch("http://127.0.0.1:${p}/").then((r) => r.text(), (e) => e.cause?.code ?? String(e))`;
  const { value, stderr } = await rt.run(`__return([${get(port)}, ${get(other)}])`);
  assert.deepEqual((value as string[] | undefined)?.[0], "host", stderr);
  assert.notEqual((value as string[])[1], "other");
});
