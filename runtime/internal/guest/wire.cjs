// Encodes and decodes the frames between a run and its host. internal/wire is the host's half,
// and documents the format.
'use strict';

const VERSION = 2;
const VALUE = 1;
const LOG = 2;
const CALL = 3;
const FAILURE = 4;
const DONE = 5;
const NO_VALUE = 7;
const OUTPUT = 8;
const TRANSLATE = 9;
const ANSWER = 16;
const CELL = 17;
const INTERRUPT = 18;
const HEAD = 5; // u32 n | u8 kind

const { BigInt, Date, Error, Uint8Array, exec, method, parse, textIncludes } = require('./intrinsics.cjs');
const { allocUnsafe, allocUnsafeSlow, byteLength, from } = Buffer;
const copy = method(Buffer.prototype.copy);
const read = method(Buffer.prototype.toString);
const write = method(Buffer.prototype.write);

function putU32(bytes, n, at) {
  bytes[at] = n >>> 24;
  bytes[at + 1] = n >>> 16;
  bytes[at + 2] = n >>> 8;
  bytes[at + 3] = n;
}

const getU32 = (bytes, at) => ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;

// Returns a frame with some bytes and a text.
function encode(kind, bytes, text) {
  const begin = HEAD + bytes.length;
  const frame = allocUnsafe(begin + byteLength(text));
  putU32(frame, frame.length - 4, 0);
  frame[4] = kind;
  for (let i = 0; i < bytes.length; i++) frame[HEAD + i] = bytes[i];
  write(frame, text, begin);
  return frame;
}

const encodeValue = (json) => encode(VALUE, [], json);
const encodeLog = (level, text) => encode(LOG, [level], text);
const encodeFailure = (json) => encode(FAILURE, [], json);
const encodeNoValue = (text) => encode(NO_VALUE, [], text);
const encodeDone = (cell) => encode(DONE, [cell >>> 24, cell >>> 16, cell >>> 8, cell], '');

// Writes a host's answer to a buffer, for rehearsals, and returns its size.
const encodeAnswer = (buffer, call, json) => copy(encode(ANSWER, [call >>> 24, call >>> 16, call >>> 8, call, 0], json), buffer);

// Returns a request to translate a file.
const encodeTranslation = (call, format, path, config, source) =>
  encode(TRANSLATE, [call >>> 24, call >>> 16, call >>> 8, call, format], `${path}\0${config}\0${source}`);

// Returns a frame with bytes that the program has written to a standard stream.
function encodeOutput(stream, bytes) {
  const frame = allocUnsafe(HEAD + 1 + bytes.length);
  putU32(frame, frame.length - 4, 0);
  frame[4] = OUTPUT;
  frame[HEAD] = stream;
  copy(bytes, frame, HEAD + 1);
  return frame;
}

const BUFFER_SIZE = 64 << 10; // bytes; the size of a pipe
const SMALL = 1 << 10; // characters of a text whose size in UTF-8 is not computed in advance

// A queue of encoded calls in a buffer that is reused.
class Frames {
  #buffer = allocUnsafeSlow(BUFFER_SIZE);
  #end = 0;

  get length() {
    return this.#end;
  }

  // Returns the size of the arguments in bytes.
  addCall(call, func, json) {
    const begin = this.#end + HEAD + 8;
    this.#makeRoom(begin + (json.length > SMALL ? byteLength(json) : 3 * json.length));
    const bytes = this.#buffer;
    const size = write(bytes, json, begin);
    putU32(bytes, size + HEAD + 4, this.#end);
    bytes[this.#end + 4] = CALL;
    putU32(bytes, call, this.#end + HEAD);
    putU32(bytes, func, this.#end + HEAD + 4);
    this.#end = begin + size;
    return size;
  }

  #makeRoom(size) {
    if (size <= this.#buffer.length) return;
    const larger = allocUnsafeSlow(size);
    copy(this.#buffer, larger, 0, 0, this.#end);
    this.#buffer = larger;
  }

  // Passes the buffer and the number of used bytes to write, and empties the queue.
  flush(write) {
    const bytes = this.#buffer;
    const end = this.#end;
    this.#end = 0;
    if (bytes.length > BUFFER_SIZE) this.#buffer = allocUnsafeSlow(BUFFER_SIZE);
    write(bytes, end);
  }
}

// Decodes the frame between two positions of a buffer.
function decode(bytes, at, end) {
  const kind = bytes[at + 4];
  switch (kind) {
    case ANSWER:
      return { kind, call: getU32(bytes, at + HEAD), failed: bytes[at + HEAD + 4] === 1, json: read(bytes, 'utf8', at + HEAD + 5, end) };
    case CELL:
      return { kind, cell: getU32(bytes, at + HEAD), text: read(bytes, 'utf8', at + HEAD + 4, end) };
    case INTERRUPT:
      return { kind, cell: getU32(bytes, at + HEAD) };
    default:
      throw new Error(`a frame of kind ${kind}`);
  }
}

// Decodes frames from a stream of bytes.
class Decoder {
  #part = null; // an incomplete frame, in a buffer of the frame's size, or of its head's
  #have = 0; // bytes of #part that have arrived

  // Returns the frames that the first n bytes of a buffer complete. The caller may reuse the
  // buffer.
  push(bytes, n = bytes.length) {
    const frames = [];
    let at = this.#part === null ? 0 : this.#complete(bytes, n, frames);
    while (n - at >= HEAD) {
      const end = at + 4 + getU32(bytes, at);
      if (end > n) break;
      frames[frames.length] = decode(bytes, at, end);
      at = end;
    }
    if (at < n) {
      this.#part = allocUnsafe(n - at < HEAD ? HEAD : 4 + getU32(bytes, at));
      this.#have = copy(bytes, this.#part, 0, at, n);
    }
    return frames;
  }

  // Returns the state for restore, after which push can process the same bytes again.
  save() {
    return [this.#part, this.#have];
  }

  restore([part, have]) {
    this.#part = part;
    this.#have = have;
  }

  // Continues the incomplete frame, and returns the number of bytes that belong to it.
  #complete(bytes, n, frames) {
    let at = 0;
    for (;;) {
      const part = this.#part;
      const copied = copy(bytes, part, this.#have, at, n);
      at += copied;
      this.#have += copied;
      if (this.#have < part.length) return at;
      const size = 4 + getU32(part, 0);
      if (size === part.length) {
        this.#part = null;
        frames[frames.length] = decode(part, 0, size);
        return at;
      }
      this.#part = allocUnsafe(size); // only the head was buffered
      copy(part, this.#part);
    }
  }
}

// Values that JSON lacks are objects with one of these keys, which real data does not have.
const BYTES = '\0bytes';
const DATE = '\0date';
const BIGINT = '\0bigint';
const DIGITS = /^-?\d+$/;

function revive(_, value) {
  if (value !== null && typeof value === 'object') {
    if (typeof value[BYTES] === 'string') return new Uint8Array(from(value[BYTES], 'base64'));
    if (typeof value[DATE] === 'string') return new Date(value[DATE]);
    if (typeof value[BIGINT] === 'string' && exec(DIGITS, value[BIGINT]) !== null) return BigInt(value[BIGINT]);
  }
  return value;
}

// Parses a value from the host.
function fromHost(json) {
  return textIncludes(json, '"\\u0000') ? parse(json, revive) : parse(json);
}

module.exports = { ANSWER, CALL, CELL, Decoder, Frames, INTERRUPT, VERSION, encodeAnswer, encodeDone, encodeFailure, encodeLog, encodeNoValue, encodeOutput, encodeTranslation, encodeValue, fromHost };
