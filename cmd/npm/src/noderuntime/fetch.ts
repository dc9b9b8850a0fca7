import { concat } from "../capture.js";
import { GaolError } from "../errors.js";
import type { Sandbox } from "../sandbox.js";

/** A request to a server of the guest. */
export interface NodeRuntimeFetchInput {
  /** By default GET. */
  method?: string;
  /** The path with the query, such as `/users?limit=10`. */
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** The response of a server of the guest. */
export interface NodeRuntimeFetchResponse {
  status: number;
  statusText: string;
  /** Names are in lower case. */
  headers: Record<string, string>;
  /** At most 64 MiB, decoded as UTF-8. */
  body: string;
}

const maxBody = 64 << 20;

/** Sends a request, and reads the response. */
export async function fetchFrom(sandbox: Sandbox, port: number, input: NodeRuntimeFetchInput): Promise<NodeRuntimeFetchResponse> {
  const { method = "GET", path, headers, body } = input;
  const url = new URL(`http://localhost:${port}${path.startsWith("/") ? "" : "/"}${path}`);
  const init: RequestInit = { method, ...(headers && { headers }) };
  if (body !== undefined) init.body = body as NonNullable<RequestInit["body"]>;
  const response = await sandbox.fetch(port, url, init);
  return {
    status: response.status,
    statusText: response.statusText,
    headers: Object.fromEntries(response.headers),
    body: await readBody(response),
  };
}

async function readBody(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > maxBody) throw new GaolError("too_large", `gaol: fetch: the response has more than ${maxBody} bytes`, { status: 413 });
    pieces.push(piece);
  }
  return new TextDecoder().decode(concat(pieces, size));
}
