import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { ConnectionError, GaolError } from "../errors.js";
import type { Channel } from "./channel.js";
import { newDeferred } from "./deferred.js";
import { openChannel, ownURL } from "./websocket.js";

/** A server of this process alone. */
export interface OwnServer {
  readonly channel: Channel;

  /** Adds the server's last output to an error. */
  describe(error: ConnectionError): ConnectionError;

  /** Waits for the end of the server. */
  exited(): Promise<void>;
}

/** The most characters of the server's messages that errors have. */
const maxTail = 2000;

/**
 * Starts `gaol serve` on a pair of connected sockets. The server ends when the connection does, even
 * if this process is killed.
 */
export async function startServer(binary: string): Promise<OwnServer> {
  const child = spawn(binary, ["serve", "--inherit", "3"], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    detached: true, // a signal of the terminal ends this program, which then ends the server
  });
  const tail = follow(child);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const channel = await openOn(child, binary, tail);
  child.unref();
  (child.stderr as unknown as Socket).unref();
  return {
    channel,
    exited() {
      child.ref(); // or the process could end before
      return exited;
    },
    describe: (e) => (tail() === "" ? e : new ConnectionError("connection", e.message + tail(), { cause: e })),
  };
}

/** Connects to the server. If it ends instead, the error has the reason. */
async function openOn(child: ChildProcess, binary: string, tail: () => string): Promise<Channel> {
  const socket = child.stdio[3] as Socket;
  const failed = newDeferred<never>();
  child.once("error", (cause) => failed.reject(new ConnectionError("no_server", `gaol: start ${binary}: ${cause.message}`, { cause })));
  child.once("close", (code, signal) => {
    failed.reject(new ConnectionError("no_server", `gaol: ${binary} serve has ended with ${signal ?? `status ${code}`}${tail()}`));
  });
  const opening = openChannel({ url: ownURL, connect: () => socket }).catch((err: unknown) => {
    socket.destroy(); // which ends the server
    if (err instanceof GaolError) throw err;
    return failed.promise; // more specific than the end of the connection
  });
  return Promise.race([opening, failed.promise]);
}

/** Passes on the server's output, and returns a function that ends this. */
function follow(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (piece: string) => {
    process.stderr.write(piece);
    text = (text + piece).slice(-maxTail);
  });
  return () => (text.trim() === "" ? "" : `: ${text.trim()}`);
}
