// A server for the tests of one file.
import { after } from "node:test";
import { connect, Sandbox, type Connection, type SandboxOptions } from "gaol";

if (!process.env["GAOL_BIN"]) throw new Error("set GAOL_BIN to the path of gaol, and run the tests as root");

/** A connection to a server of this process alone. */
export const connection: Connection = connect({ own: true });
after(() => connection.close());

/** Creates a sandbox until the end of the test. */
export async function sandbox(t: { after(f: () => unknown): void }, options: SandboxOptions = {}): Promise<Sandbox> {
  const created = await Sandbox.create({ connection, ...options });
  t.after(() => created.close());
  return created;
}
