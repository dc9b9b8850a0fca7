// Servers that end, are started for this program, or are used by several.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { connect, ConnectionError, Sandbox } from "gaol";
import { tempFolder } from "./fake.mjs";
import { serve } from "./own.mjs";

/** Returns the processes whose parent is this one, with the arguments that begin with gaol serve. */
function servers(parent: number = process.pid): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return command.includes("--inherit") && Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) === parent;
    } catch {
      return false; // it has ended
    }
  });
}

test("a server that is killed and started again", async (t) => {
  const socket = path.join(tempFolder(t), "s.sock");
  const first = await serve(t, socket);
  const connection = connect({ socket });
  t.after(() => connection.close());
  const sb = await Sandbox.create({ connection });
  const process = await sb.spawn("sleep", ["1000"]);
  const context = await sb.createContext();
  const stdout = once(process.stdout, "close");
  const pending = [sb.run("setInterval(() => {}, 1000)"), process.wait(), context.ended, context.evaluate("await new Promise(() => {})"), sb.waitForListener(1)];
  const all = Promise.allSettled(pending);
  const exited = once(first, "exit");
  first.kill("SIGKILL");
  for (const result of await all) assert(result.status === "rejected" && result.reason instanceof ConnectionError, JSON.stringify(result));
  await stdout;
  await assert.rejects(sb.run("1"), ConnectionError);
  await sb.close(); // it has ended with its connection
  await exited;
  await assert.rejects(Sandbox.create({ connection }), { code: "no_server" });
  await serve(t, `${socket}2`);
  const second = connect({ socket: `${socket}2` });
  assert.equal((await (await Sandbox.create({ connection: second })).run("__return(1)")).value, 1);
  await second.close();
});

test("a client that is killed leaves nothing on the server", async (t) => {
  const socket = path.join(tempFolder(t), "s.sock");
  await serve(t, socket);
  const program = `
    const { Sandbox, connect } = require("gaol");
    (async () => {
      const connection = connect({ socket: ${JSON.stringify(socket)} });
      const sb = await Sandbox.create({ connection });
      await sb.createContext();
      const p = await sb.spawn("sleep", ["1000"]);
      await sb.run("console.log('up'); setInterval(() => {}, 1000)", { onStdout: () => console.log("up") });
    })();`;
  const client = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  await once(client.stdout, "data");
  const connection = connect({ socket });
  t.after(() => connection.close());
  const [info] = await Sandbox.list({ connection });
  assert.equal(info?.processes, 3);
  client.kill("SIGKILL");
  while ((await Sandbox.list({ connection })).length > 0) await new Promise(setImmediate);
});

test("a server of this program is started, shared, and ends with the connection", async () => {
  const connection = connect({ own: true });
  const [a, b] = await Promise.all([Sandbox.create({ connection }), Sandbox.create({ connection })]);
  assert.equal(servers().length, 1);
  assert.equal((await a.run("__return(1)")).value, 1);
  await a.close();
  await connection.close();
  assert.deepEqual(servers(), []);
  await assert.rejects(b.run("1"), ConnectionError);
});

test("a server of this program that is killed is started again", async (t) => {
  const connection = connect({ own: true });
  t.after(() => connection.close());
  const sb = await Sandbox.create({ connection });
  const running = assert.rejects(sb.run("setInterval(() => {}, 1000)"), ConnectionError);
  const [pid] = servers();
  process.kill(pid as number, "SIGKILL");
  await running;
  assert.equal((await (await Sandbox.create({ connection })).run("__return(2)")).value, 2);
});

test("a program with a server of its own ends by itself, and its server with it", async () => {
  const program = (end: string) => `
    const { connect, Sandbox } = require("gaol");
    (async () => {
      const sb = await Sandbox.create({ connection: connect({ own: true }) }); // is not closed
      const { value } = await sb.run("__return(3)");
      console.log(value, require("fs").readFileSync("/proc/thread-self/children", "utf8"));
      ${end}
    })();`;
  for (const end of ["", "process.exit()", "process.kill(process.pid, 'SIGKILL')"]) {
    const child = spawn(process.execPath, ["-e", program(end)], { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    await once(child, "close");
    const [, server] = /^3 (\d+) \n$/.exec(out) ?? assert.fail(out);
    while (isRunning(Number(server))) await new Promise(setImmediate);
  }
});

/** Reports whether a process exists that has not ended. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8") !== "";
  } catch {
    return false;
  }
}

test("a program that is no gaol, or too old, is named", async (t) => {
  const binary = path.join(tempFolder(t), "gaol");
  writeFileSync(binary, "#!/bin/sh\necho 'unknown flag: --inherit' >&2\nexit 2\n", { mode: 0o755 });
  await assert.rejects(connect({ own: true, binary }).session(), { code: "no_server", message: `gaol: ${binary} serve has ended with status 2: unknown flag: --inherit` });
  writeFileSync(binary, "#!/no/such/interpreter\n", { mode: 0o755 });
  await assert.rejects(connect({ own: true, binary }).session(), { code: "no_server", message: /start .*ENOENT/ });
});
