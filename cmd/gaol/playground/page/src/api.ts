// The server's API: what it offers, and runs.
import { EventParser, type ServerEvent } from "./sse.js";
import type { File } from "./files.js";

const url = "api/sandbox";

/** What the server offers. */
export interface Offer {
  adapters: string[];
  adapter: string; // the default
  permissions: string[];
  timeoutMs: { default: number; min: number; max: number };
}

/** What a server offers that has not said it. */
export const leastOffer: Offer = {
  adapters: ["none"],
  adapter: "none",
  permissions: ["strict", "default"],
  timeoutMs: { default: 5000, min: 100, max: 10_000 },
};

export interface Request {
  files: File[];
  timeoutMs: number;
  adapter?: string;
  permissions?: string;
}

export interface Problem {
  path: string;
  line: number;
  column: number;
  message: string;
}

export interface Denial {
  scope: string;
  operation: string;
  target: string;
  rule: string;
  count: number;
}

export interface Usage {
  cpuMs: number;
  peakMemoryBytes: number;
  pids: number;
  network?: { connections: number; lookups: number; denied: number; bytesIn: number; bytesOut: number };
}

/** What a program did. */
export interface Result {
  logs: string[];
  facts: Record<string, unknown>;
  derived: Record<string, unknown>;
  errors: string[];
  durationMs: number;
  timedOut: boolean;
  problems: Problem[];
  denials: Denial[];
  usage?: Usage;
}

/** A request that failed. The message is for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number, // 0 without an answer
    message: string,
  ) {
    super(message);
  }
}

/** Returns what the server offers. */
export async function fetchOffer(token: string): Promise<Offer> {
  const response = await request(token, { headers: { Accept: "application/json" } });
  return { ...leastOffer, ...((await response.json()) as Partial<Offer>) };
}

/** Runs a program. onLine is called with each line of its output. */
export async function run(
  program: Request,
  token: string,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<Result> {
  const response = await request(token, {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify(program),
    signal,
  });
  let result: Result | undefined;
  const parser = new EventParser((event) => {
    if (event.type === "log") {
      onLine(lineOf(event));
    } else if (event.type === "result") {
      result = resultOf(event);
    } else if (event.type === "error") {
      throw problemOf(event);
    }
  });
  await readAll(response, parser, signal);
  if (result === undefined) {
    throw new ApiError(0, "The connection to the server was lost while the program ran.");
  }
  return result;
}

async function readAll(response: Response, parser: EventParser, signal: AbortSignal): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).getReader();
  if (reader === undefined) {
    return;
  }
  let until = performance.now() + busy;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      parser.push(value);
      if (performance.now() > until) {
        await new Promise((resolve) => setTimeout(resolve)); // the page must stay responsive
        until = performance.now() + busy;
      }
    }
  } catch (error) {
    reader.cancel().catch(() => undefined);
    signal.throwIfAborted();
    if (error instanceof ApiError) {
      throw error;
    }
    throw error instanceof RangeError || error instanceof SyntaxError
      ? new ApiError(0, "The server's answer cannot be read.")
      : new ApiError(0, "The connection to the server was lost while the program ran.");
  }
}

/** How long the page may be busy with output before it handles events, in milliseconds. */
const busy = 12;

async function request(token: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== "") {
    headers.set("Authorization", `Bearer ${token}`);
  }
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    init.signal?.throwIfAborted();
    throw new ApiError(0, "The server cannot be reached. Check your connection, then run again.");
  }
  if (!response.ok) {
    throw new ApiError(response.status, messageOf(response.status, await detailOf(response), response.headers.get("Retry-After")));
  }
  return response;
}

const maxDetail = 1000;

async function detailOf(response: Response): Promise<string> {
  try {
    const { detail } = (await response.json()) as { detail?: unknown };
    return typeof detail === "string" ? detail.slice(0, maxDetail) : "";
  } catch {
    return "";
  }
}

/** Says in plain words what an unsuccessful answer means. */
export function messageOf(status: number, detail: string, retryAfter: string | null): string {
  switch (status) {
    case 401:
      return "This server runs code only for callers with a token.";
    case 403:
      return `The server does not allow this${after(detail)}`;
    case 404:
      return "This server does not run programs for this page.";
    case 413:
      return "The files are too large for this server.";
    case 429:
      return `Too many runs. ${retry(retryAfter)}`;
    case 502:
    case 503:
    case 504:
      return `The server is not available now. ${retry(retryAfter)}`;
  }
  return status >= 500
    ? `The server failed${after(detail)}`
    : `The server did not accept the program${after(detail || `status ${status}`)}`;
}

function after(detail: string): string {
  return detail === "" ? "." : `: ${detail}`;
}

/** Returns advice for a Retry-After header: seconds, or a date. */
export function retry(header: string | null): string {
  const seconds = /^\d{1,6}$/.test(header ?? "") ? Number(header) : (Date.parse(header ?? "") - Date.now()) / 1000;
  if (!(seconds > 0)) {
    return "Try again in a moment.";
  }
  if (seconds >= 90) {
    return `Try again in ${Math.ceil(seconds / 60)} minutes.`;
  }
  return `Try again in ${Math.ceil(seconds)} second${Math.ceil(seconds) === 1 ? "" : "s"}.`;
}

function lineOf(event: ServerEvent): string {
  const { line } = JSON.parse(event.data) as { line?: unknown };
  return typeof line === "string" ? line : "";
}

// The server could not run the program, and had already begun its answer.
function problemOf(event: ServerEvent): ApiError {
  const { status, detail } = JSON.parse(event.data) as { status?: unknown; detail?: unknown };
  const known = typeof status === "number" ? status : 500;
  return new ApiError(known, messageOf(known, typeof detail === "string" ? detail.slice(0, maxDetail) : "", null));
}

function resultOf(event: ServerEvent): Result {
  const r = JSON.parse(event.data) as Partial<Result>;
  return {
    logs: r.logs ?? [],
    facts: r.facts ?? {},
    derived: r.derived ?? {},
    errors: r.errors ?? [],
    durationMs: r.durationMs ?? 0,
    timedOut: r.timedOut ?? false,
    problems: r.problems ?? [],
    denials: r.denials ?? [],
    ...(r.usage === undefined ? {} : { usage: r.usage }),
  };
}
