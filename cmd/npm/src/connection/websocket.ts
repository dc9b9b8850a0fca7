import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import WebSocket from "ws";
import { ConnectionError, type GaolError } from "../errors.js";
import type { Channel } from "./channel.js";
import { maxFrame, protocol } from "../operations.js";
import { problemError } from "./request.js";
import { version } from "../version.js";

/** The path of sessions. */
export const sessionPath = "/v1/session";

/** The URL of a server that is not reached by the host name. */
export const ownURL = `ws://gaol${sessionPath}`;

/** Where to open a WebSocket. */
export interface Endpoint {
  /** The URL, of ws: or wss:. */
  url: string;

  /** Makes the connection, if it is not a TCP connection to the host of the URL. */
  connect?: () => Duplex;

  /** The bearer token. */
  token?: string | undefined;

  /** How long the server may take to accept the connection, in milliseconds. Without it, there is no limit. */
  timeoutMs?: number;
}

/** The most bytes of the body of a refusal. */
const maxProblem = 64 << 10;

/** How long the other side may take for the last steps of a connection, in milliseconds. */
const patience = 10_000;

/** Opens a WebSocket to a server. Errors of the system, such as ECONNREFUSED, are rejections as they are. */
export function openChannel(e: Endpoint): Promise<Channel> {
  const socket = new WebSocket(e.url, [protocol], {
    perMessageDeflate: false,
    maxPayload: maxFrame + 1024,
    skipUTF8Validation: true,
    followRedirects: false,
    ...({ closeTimeout: patience } as object),
    ...(e.timeoutMs !== undefined && { handshakeTimeout: e.timeoutMs }),
    ...(e.token !== undefined && { headers: { authorization: `Bearer ${e.token}` } }),
    ...(e.connect !== undefined && { createConnection: e.connect as never }),
  });
  return new Promise((resolve, reject) => {
    let stream: Duplex | undefined;
    socket.once("upgrade", (response) => (stream = response.socket));
    socket.once("unexpected-response", (request, response) => {
      request.on("error", () => undefined);
      void refusal(response).then((err) => {
        reject(err);
        request.destroy();
      });
    });
    socket.once("error", (err) => reject(handshakeError(err)));
    socket.once("open", () => resolve(newChannel(socket, stream)));
  });
}

function newChannel(socket: WebSocket, stream: Duplex | undefined): Channel {
  const { ref, unref } = (stream ?? {}) as { ref?(): unknown; unref?(): unknown };
  let failure = "";
  socket.on("error", (err) => (failure = err.message));
  return {
    send: (f) => socket.send(f, ignore),
    close: (code, reason) => socket.close(code, cut(reason)),
    ping: () => socket.ping(undefined, undefined, ignore),
    keepAlive: (yes) => void (stream?.destroyed || (yes ? ref : unref)?.call(stream)), // a destroyed stream would add listeners
    listen(on) {
      socket.on("message", (data, binary) => on.message(data as Buffer, binary));
      socket.on("pong", () => on.pong());
      socket.on("close", (code, reason) => on.close(failure || reason.toString() || (code === 1001 ? "the server is being stopped" : "")));
    },
  };
}

const ignore = (): void => undefined; // the connection's end is reported by the event close

/** Returns the part of a text that a close frame has room for. */
function cut(reason: string): string {
  return Buffer.from(reason).subarray(0, 123).toString().replace(/\uFFFD+$/, "");
}

/** Returns the error for a handshake that has failed. */
function handshakeError(err: Error): Error {
  if (!/subprotocol/i.test(err.message)) return err;
  return new ConnectionError("version", `gaol: the server does not speak ${protocol}, the protocol of this client (gaol ${version})`, { cause: err });
}

/** Returns why the server has refused the connection. */
async function refusal(response: IncomingMessage): Promise<GaolError> {
  const p = await readProblem(response);
  const status = response.statusCode ?? 0;
  const detail = typeof p["detail"] === "string" ? p["detail"] : undefined;
  if (status === 426) {
    const theirs = /gaol\.v\d+/.exec(detail ?? "")?.[0] ?? "another protocol";
    const versions = `the server speaks ${theirs}, this client (gaol ${version}) speaks ${protocol}`;
    return new ConnectionError("version", `gaol: ${versions}: install the package of the server's version`, { status });
  }
  if (typeof p["code"] === "string") return problemError(p["code"], { ...p, status });
  return new ConnectionError("connection", `gaol: the server replied with status ${status}: it is no gaol server, or one of another version`, { status });
}

/** Reads the body of a refusal: an object, which is empty if the server has sent none. */
async function readProblem(response: IncomingMessage): Promise<Record<string, unknown>> {
  const timer = setTimeout(() => response.destroy(), patience);
  try {
    let text = "";
    for await (const piece of response.setEncoding("utf8")) {
      if ((text += piece as string).length > maxProblem) break;
    }
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  } finally {
    clearTimeout(timer);
  }
}
