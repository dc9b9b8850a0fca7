// A server for the tests of one file, and servers for one test.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import { after } from "node:test";
import { connect, Sandbox, type Connection, type SandboxOptions } from "gaol";

const gaol = process.env["GAOL_BIN"] as string;
if (!gaol) throw new Error("set GAOL_BIN to the path of gaol, and run the tests as root");

/** A connection to a server of this process alone, or to that of GAOL_SOCKET. */
export const connection: Connection = connect({ own: process.env["GAOL_SOCKET"] === undefined });
after(() => connection.close());

/** A test, or the module of all tests, which runs functions after its end. */
interface Ending {
  after(f: () => unknown): void;
}

/** Creates a sandbox until the end of the test. */
export async function sandbox(t: Ending, options: SandboxOptions = {}): Promise<Sandbox> {
  const created = await Sandbox.create({ connection, ...options });
  t.after(() => created.close());
  return created;
}

/** Starts a server on a socket, with flags, until the end of the test. */
export async function serve(t: Ending, socket: string, ...flags: string[]): Promise<ChildProcess> {
  const child = spawn(gaol, ["serve", "--socket", socket, ...flags], { stdio: "ignore" });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill();
      await once(child, "exit");
    }
  });
  while (!(await accepts(socket))) assert.equal(child.exitCode, null);
  return child;
}

/** Reports whether a server listens on a socket. */
function accepts(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const s = createConnection(socket, () => resolve(true)).on("error", () => setTimeout(resolve, 10, false));
    s.on("connect", () => s.destroy());
  });
}
