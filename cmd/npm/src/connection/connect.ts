import { connect as connectSocket } from "node:net";
import { statSync } from "node:fs";
import { ConnectionError } from "../errors.js";
import { findBinary } from "./binary.js";
import { startServer } from "./child.js";
import { checkDefaultSocket, defaultSocket, targets, type ConnectOptions, type Target } from "./find.js";
import { newSession, type Session } from "./session.js";
import { openChannel, ownURL, sessionPath, type Endpoint } from "./websocket.js";

/** How long a server may take to accept a connection, in milliseconds. */
const handshakeTimeout = 30_000;

/** A session that was opened. */
export interface Opened {
  session: Session;

  /** Waits for the end of the server, if it was started for the session. */
  exited(): Promise<void>;
}

/** Connects to the server that the options and the environment choose. */
export async function openSession(o: ConnectOptions): Promise<Opened> {
  const all = targets(o, process.env, process.getuid?.());
  for (const target of all.slice(0, -1)) {
    try {
      return await open(target);
    } catch (err) {
      if (!isAbsent(err)) throw explain(target, err);
    }
  }
  const last = all.at(-1) as Target;
  return open(last).catch((err: unknown) => {
    throw explain(last, err);
  });
}

async function open(t: Target): Promise<Opened> {
  if (t.kind === "own") {
    const server = await startServer(findBinary(t.binary));
    return { session: newSession(server.channel, server), exited: server.exited };
  }
  if (t.kind === "socket" && t.implicit) checkDefaultSocket(t.path);
  const channel = await openChannel({ ...endpoint(t), timeoutMs: handshakeTimeout });
  return { session: newSession(channel), exited: () => Promise.resolve() };
}

function endpoint(t: Exclude<Target, { kind: "own" }>): Endpoint {
  if (t.kind === "socket") return { url: ownURL, connect: () => connectSocket(t.path) };
  return { url: t.url.replace(/^http/, "ws") + sessionPath, token: t.token };
}

/** Reports whether no server listens. */
function isAbsent(err: unknown): boolean {
  const { code } = err as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ECONNREFUSED";
}

/** Returns why there is no connection, and what helps. */
function explain(t: Target, err: unknown): unknown {
  if (err instanceof ConnectionError || !(err instanceof Error) || err.name === "GaolError") return err;
  const { code } = err as NodeJS.ErrnoException;
  const details = { cause: err };
  if (t.kind === "socket" && isAbsent(err)) {
    return new ConnectionError("no_server", `gaol: no server listens on ${t.path}; start one with: sudo gaol serve`, details);
  }
  if (t.kind === "socket" && (code === "EACCES" || code === "EPERM")) {
    const join = `sudo usermod -aG ${group(t.path)} ${user()}`;
    return new ConnectionError("no_server", `gaol: you may not use the server on ${t.path}: join its group with: ${join}`, details);
  }
  const where = t.kind === "own" ? "the server" : t.kind === "url" ? t.url : t.path;
  return new ConnectionError("no_server", `gaol: connect to ${where}: ${err.message}`, details);
}

/** The group that may use a socket: gaol's, or the number of another one. */
function group(path: string): string {
  try {
    const { gid } = statSync(path);
    return path === defaultSocket ? "gaol" : String(gid);
  } catch {
    return "gaol";
  }
}

function user(): string {
  return process.env["USER"] || "$USER";
}
