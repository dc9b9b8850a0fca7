import { maxFrame, receive, send, stream } from "../operations.js";
import { decode } from "./values.js";

/** The bytes of each kind's body, from and to. */
const bodies = new Map<number, readonly [number, number]>([
  [receive.credit, [5, 5]],
  [receive.result, [1, maxFrame]],
  [receive.error, [2, maxFrame]],
  [receive.stdout, [1, maxFrame]],
  [receive.stderr, [1, maxFrame]],
  [receive.event, [2, maxFrame]],
  [receive.call, [6, maxFrame]],
  [receive.abandon, [0, 0]],
]);

const headSize = 5;

/** A frame of the server. */
export interface Frame {
  kind: number;
  id: number;
  body: Uint8Array;
}

/** The server has sent something that the protocol does not have. */
export class FrameError extends Error {}

/** Parses a message of the server. The body is a part of the message. */
export function parse(message: Uint8Array): Frame {
  if (message.length < headSize) throw new FrameError(`a frame of ${message.length} bytes`);
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const frame = { kind: view.getUint8(0), id: view.getUint32(1), body: plain(message).subarray(headSize) };
  const size = bodies.get(frame.kind);
  if (size === undefined) throw new FrameError(`a frame of kind ${frame.kind}`);
  if (frame.id === 0) throw new FrameError(`a frame of kind ${frame.kind} with the id 0`);
  if (frame.body.length < size[0] || frame.body.length > size[1]) {
    throw new FrameError(`a frame of kind ${frame.kind} with ${frame.body.length} bytes`);
  }
  if (frame.kind === receive.credit && frame.body[0] !== stream.stdin) {
    throw new FrameError(`credit for the stream ${frame.body[0]}`);
  }
  return frame;
}

/** Returns a Buffer as a Uint8Array, which is what callers expect. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Parses the body of a credit frame: a number of bytes. */
export function parseCredit(body: Uint8Array): number {
  return new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(1);
}

/** Parses the body of a call: the number of the function, and its arguments. */
export function parseCall(body: Uint8Array): { id: number; args: unknown[] } {
  const id = new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(0);
  const args = parseJSON(body.subarray(4));
  if (!Array.isArray(args)) throw new FrameError("arguments that are no array");
  return { id, args };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses JSON of the server. */
export function parseJSON(body: Uint8Array): unknown {
  try {
    return decode(utf8.decode(body));
  } catch (cause) {
    throw new FrameError("a body that is not JSON", { cause });
  }
}

/** Parses a JSON object of the server. */
export function parseObject(body: Uint8Array): Record<string, unknown> {
  const value = parseJSON(body);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new FrameError("a body that is no object");
  return value as Record<string, unknown>;
}

/** Returns a frame. */
export function frame(kind: number, id: number, body: Uint8Array = new Uint8Array()): Uint8Array {
  const bytes = new Uint8Array(headSize + body.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, kind);
  view.setUint32(1, id);
  bytes.set(body, headSize);
  return bytes;
}

/** Returns a frame that returns credit. */
export function creditFrame(id: number, of: number, bytes: number): Uint8Array {
  const body = new Uint8Array(5);
  const view = new DataView(body.buffer);
  view.setUint8(0, of);
  view.setUint32(1, bytes);
  return frame(send.credit, id, body);
}
