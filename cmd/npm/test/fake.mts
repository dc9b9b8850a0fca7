// A server for tests that sends whatever a test wants.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { WebSocketServer, type WebSocket } from "ws";
import { connect, type Session } from "gaol";

/** A frame of the client. */
export interface ClientFrame {
  kind: number;
  id: number;
  body: Buffer;
}

/** A client of the fake server. */
export interface Peer {
  readonly socket: WebSocket;

  /** Returns the next frame of one of the kinds, and drops others. */
  next(...kinds: number[]): Promise<ClientFrame>;

  /** Sends a frame. */
  send(kind: number, id: number, body?: string | Uint8Array): void;

  /** The frames that have arrived and were not taken. */
  readonly frames: ClientFrame[];

  /** The code with which the client has closed the connection. */
  readonly closed: Promise<number>;
}

/** Returns the path of a folder that is removed after the test. */
export function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), "gaol-npm-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a server that calls serve for each client. refuse replies to handshakes, if it returns true. */
export async function fakeServer(t: TestContext, serve: (peer: Peer) => unknown, refuse?: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const socket = path.join(tempFolder(t), "s.sock");
  const http = createServer((request, response) => refuse?.(request, response));
  const server = new WebSocketServer({ noServer: true, handleProtocols: (offered) => (offered.has("gaol.v2") ? "gaol.v2" : false) });
  if (refuse === undefined) http.on("upgrade", (request, stream, head) => server.handleUpgrade(request, stream, head, (ws) => void serve(newPeer(ws))));
  http.listen(socket);
  await once(http, "listening");
  t.after(() => {
    for (const client of server.clients) client.terminate();
    http.close();
    http.closeAllConnections();
  });
  return socket;
}

function newPeer(socket: WebSocket): Peer {
  const frames: ClientFrame[] = [];
  let wake = (): void => undefined;
  socket.on("message", (data: Buffer) => {
    frames.push({ kind: data.readUInt8(0), id: data.readUInt32BE(1), body: data.subarray(5) });
    wake();
  });
  const closed = once(socket, "close").then(([code]) => code as number);
  return {
    socket,
    frames,
    closed,
    async next(...kinds) {
      for (;;) {
        const f = frames.shift();
        if (f === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (kinds.length === 0 || kinds.includes(f.kind)) return f;
      }
    },
    send(kind, id, body = "") {
      const head = Buffer.alloc(5);
      head.writeUInt8(kind, 0);
      head.writeUInt32BE(id, 1);
      socket.send(Buffer.concat([head, Buffer.from(body)]));
    },
  };
}

/** Connects to a socket until the end of the test. */
export async function session(t: TestContext, socket: string): Promise<Session> {
  const connection = connect({ socket });
  t.after(() => connection.close());
  return connection.session();
}

/** Returns the body of a credit frame. */
export function credit(stream: number, bytes: number): Buffer {
  const body = Buffer.alloc(5);
  body.writeUInt8(stream, 0);
  body.writeUInt32BE(bytes, 1);
  return body;
}

/** Returns the body of a call. */
export function call(id: number, args: unknown): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(id, 0);
  return Buffer.concat([body, Buffer.from(JSON.stringify(args))]);
}
