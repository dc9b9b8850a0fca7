import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { connect, NodeRuntime, Sandbox } from "gaol";

const runs = Number(process.env["GAOL_RUNS"] ?? 200);

/** Open descriptors of this process and of the server that it has started, and the memory of both in MiB. */
function inUse(server: number): { descriptors: number; memory: number } {
  const descriptors = ["self", server].map((pid) => readdirSync(`/proc/${pid}/fd`).length).reduce((a, b) => a + b);
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server}/status`, "utf8"))?.[1]) / 1024;
  return { descriptors, memory: process.memoryUsage().heapUsed / 2 ** 20 + rss };
}

/** Returns the process ID of the only child of this process. */
function child(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
  assert.equal(children.length, 1, children.join(" "));
  return Number(children[0]);
}

test(`${runs} runs leave nothing`, async (t) => {
  const rt = await NodeRuntime.create({ bindings: { add: { description: "", inputSchema: {}, handler: ({ n }: { n: number }) => n + 1 } } });
  t.after(() => rt.dispose());
  const run = async (n: number): Promise<void> => assert.equal((await rt.run<number>(`__return(await callBinding("add", { n: ${n} }))`)).value, n + 1);
  for (let n = 0; n < 20; n++) await run(n);
  const before = inUse(child());
  for (let n = 0; n < runs; n++) await run(n);
  const after = inUse(child());
  assert.ok(after.descriptors <= before.descriptors + 8, `${before.descriptors} descriptors became ${after.descriptors}`);
  assert.ok(after.memory < before.memory + 48, `${before.memory} MiB became ${after.memory}`);
  const { runningProcesses } = await rt.getResourceSnapshot();
  assert.ok(runningProcesses <= 1, `${runningProcesses} processes are left`);
});

/** Starts a server on a socket of its own. */
async function serve(t: TestContext): Promise<string> {
  const dir = mkdtempSync(path.join(tmpdir(), "gaol-npm-"));
  const socket = path.join(dir, "gaol.sock");
  const server = spawn(process.env["GAOL_BIN"] ?? "gaol", ["serve", "--socket", socket, "--log-format", "json"], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  t.after(async () => {
    server.kill("SIGTERM");
    await ended;
    rmSync(dir, { recursive: true });
  });
  for await (const _ of server.stderr) {
    if (existsSync(socket)) break;
  }
  server.stderr.resume();
  return socket;
}

test("a killed client leaves nothing on the server", { timeout: 120_000 }, async (t) => {
  const socket = await serve(t);
  const program = `
    import { NodeRuntime } from "gaol";
    const rt = await NodeRuntime.create();
    await rt.spawn("setInterval(() => {}, 1000)");
    rt.exec("console.log('busy'); for (;;);", { onStdout: () => console.log("busy") });
  `;
  const client = spawn(process.execPath, ["--input-type=module", "-e", program], { env: { ...process.env, GAOL_SOCKET: socket }, stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise((resolve) => client.once("exit", resolve));
  await new Promise((resolve) => client.stdout.once("data", resolve));
  await using connection = connect({ socket });
  assert.deepEqual((await Sandbox.list({ connection })).map((s) => s.processes), [2]);
  client.kill("SIGKILL");
  await gone;
  for (;;) {
    if ((await Sandbox.list({ connection })).length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
