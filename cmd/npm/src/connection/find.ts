import { lstatSync, type Stats } from "node:fs";
import path from "node:path";
import { ConnectionError } from "../errors.js";
import type { Names } from "../names.js";

/** Which server to use. At most one of `socket`, `url` and `own` may be given. */
export interface ConnectOptions {
  /** The path of a server's unix socket. */
  socket?: string | undefined;

  /** The URL of a server on TCP, such as `https://gaol.example.com:8640`. */
  url?: string | undefined;

  /** The bearer token for `url`. By default `$GAOL_TOKEN`. */
  token?: string | undefined;

  /** Start a server for this connection alone, which ends with it. The program must be root. */
  own?: boolean | undefined;

  /** The gaol program for `own`. By default `$GAOL_BIN`, then that of the package for this platform, then `gaol` on PATH. */
  binary?: string | undefined;
}

/** Names of the options of connect. */
export const connectNames = { socket: true, url: true, token: true, own: true, binary: true } satisfies Names<ConnectOptions>;

/** The environment variables that choose a server. */
export type Environment = Record<string, string | undefined>;

/** A server that was found, not necessarily running. */
export type Target =
  | { kind: "socket"; path: string; implicit: boolean } // implicit: neither the program nor the environment has named it
  | { kind: "url"; url: string; token: string | undefined }
  | { kind: "own"; binary: string | undefined };

/** Where a server listens, unless its operator has chosen another path. */
export const defaultSocket = "/run/gaol/gaol.sock";

/** Returns the servers to try, in this order: the next one if nothing listens there. Only Linux has servers. */
export function targets(o: ConnectOptions, env: Environment, uid: number | undefined, platform: string = process.platform): Target[] {
  const given = [o.socket !== undefined, o.url !== undefined, o.own === true].filter(Boolean).length;
  if (given > 1) throw new TypeError("gaol: connect: socket, url and own exclude each other");
  if (o.socket !== undefined) return [{ kind: "socket", path: o.socket, implicit: false }];
  if (o.url !== undefined) return [urlTarget(o.url, o.token ?? env["GAOL_TOKEN"])];
  if (o.own !== true) {
    if (env["GAOL_SOCKET"]) return [{ kind: "socket", path: env["GAOL_SOCKET"], implicit: false }];
    if (env["GAOL_URL"]) return [urlTarget(env["GAOL_URL"], o.token ?? env["GAOL_TOKEN"])];
  }
  if (platform !== "linux") {
    const remote = "set GAOL_URL and GAOL_TOKEN, or use connect({ url, token }), for a server on Linux";
    throw new ConnectionError("no_server", `gaol: sandboxes need Linux, and this system is ${platform}: ${remote}`);
  }
  const own: Target = { kind: "own", binary: o.binary ?? (env["GAOL_BIN"] || undefined) };
  if (o.own === true) return [own];
  const implicit: Target = { kind: "socket", path: defaultSocket, implicit: true };
  return uid === 0 && o.own !== false ? [implicit, own] : [implicit];
}

function urlTarget(url: string, token: string | undefined): Target {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.username !== "" || parsed.search !== "" || parsed.hash !== "") {
    throw new TypeError(`gaol: connect: the URL ${JSON.stringify(url)}: want http:// or https:// and a host`);
  }
  return { kind: "url", url: parsed.href.replace(/\/$/, ""), token: token || undefined };
}

/**
 * Checks the default socket: if another user created it, that user could read all code and files sent to
 * it. The socket and its folder must belong to root, and only root may write to the folder.
 */
export function checkDefaultSocket(file: string = defaultSocket): void {
  const folder = stat(path.dirname(file));
  const socket = stat(file);
  if (folder === undefined || socket === undefined) return; // connecting fails
  const trusted = folder.isDirectory() && folder.uid === 0 && (folder.mode & 0o022) === 0 && socket.isSocket() && socket.uid === 0;
  if (trusted) return;
  const rule = "it and its folder must belong to root, and others must not be able to write to the folder";
  throw new ConnectionError("no_server", `gaol: ${file} is not trusted: ${rule}`);
}

function stat(file: string): Stats | undefined {
  try {
    return lstatSync(file);
  } catch {
    return undefined;
  }
}
