import { request as httpRequest, type IncomingMessage } from "node:http";
import { Readable, type Duplex } from "node:stream";
import type { OpenRequest, Session, SessionEvent } from "./connection/session.js";
import { GaolError } from "./errors.js";
import { newPipe } from "./streams.js";

/**
 * Connects to a server in a sandbox. The connection keeps the Node process alive until it is closed. Without a listener
 * for errors, it closes without one.
 */
export async function dial(session: Session, sandbox: string, port: number, signal?: AbortSignal): Promise<Duplex> {
  let r!: OpenRequest;
  const { stream, push } = newPipe(() => r);
  const onEvent = ({ event }: SessionEvent): void => void (event === "end" && stream.push(null));
  r = session.open("dial", { sandbox, port }, { signal, stdin: true, onStdout: push, onEvent });
  await r.started;
  r.result.then(
    () => void (stream.destroyed || stream.push(null)),
    (err: unknown) => stream.destroy(stream.listenerCount("error") > 0 ? (err as Error) : undefined), // or it would end the program
  );
  return stream;
}

/** Connects to the server of a port. */
type Connect = (signal: AbortSignal) => Promise<Duplex>;

/**
 * Sends an HTTP request to a server in a sandbox. It differs from fetch: redirects are not followed, bodies are not
 * decompressed, and each request uses a new connection.
 */
export async function fetchPort(connect: Connect, port: number, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const request = new Request(input instanceof Request ? input : new URL(input, `http://localhost:${port}`), init);
  const { pathname, search } = new URL(request.url);
  const body = await sendable(input, init, request);
  const socket = await connect(request.signal);
  const headers: Record<string, string> = { "accept-encoding": "identity", ...Object.fromEntries(request.headers), host: `localhost:${port}` };
  if (body instanceof Uint8Array) headers["content-length"] = String(body.length);
  return new Promise((resolve, reject) => {
    const { method, signal } = request;
    const r = httpRequest({ createConnection: () => socket, method, path: pathname + search, headers, signal });
    const fail = (err: unknown): void => reject(signal.aborted ? signal.reason : badGateway(err));
    r.once("error", fail);
    r.once("response", (response) => {
      try {
        resolve(toResponse(response, method)); // without waiting: the stream can fail at any time
      } catch (err) {
        response.destroy();
        fail(err); // a program can send replies that a Response cannot represent
      }
    });
    if (body instanceof Readable) body.on("error", (err) => r.destroy(err)).pipe(r);
    else r.end(body);
  });
}

/** Returns the body: bytes, if they are known, so that the request has their number, or a stream. */
async function sendable(input: string | URL | Request, init: RequestInit, request: Request): Promise<Uint8Array | Readable | undefined> {
  if (request.body === null) return undefined;
  const given = init.body as { [Symbol.asyncIterator]?: unknown } | undefined;
  const streamed = input instanceof Request || typeof given?.[Symbol.asyncIterator] === "function"; // a ReadableStream, too
  return streamed ? Readable.fromWeb(request.body as never) : new Uint8Array(await request.arrayBuffer());
}

function badGateway(cause: unknown): GaolError {
  return new GaolError("bad_gateway", `gaol: fetch: ${cause instanceof Error ? cause.message : String(cause)}`, { status: 502, cause });
}

/** Statuses whose responses have no body. */
const withoutBody = new Set([204, 205, 304]);

function toResponse(r: IncomingMessage, method: string): Response {
  const headers = new Headers();
  for (let i = 0; i + 1 < r.rawHeaders.length; i += 2) headers.append(r.rawHeaders[i] as string, r.rawHeaders[i + 1] as string);
  const status = r.statusCode ?? 0;
  const empty = method === "HEAD" || withoutBody.has(status);
  if (empty) r.resume();
  return new Response(empty ? null : (Readable.toWeb(r) as never), { status, statusText: r.statusMessage ?? "", headers });
}
