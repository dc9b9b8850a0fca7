// Frames between a run and its host: the guest's half of internal/wire, whose doc.go
// draws them.
'use strict';

const VERSION = 2;
const VALUE = 1;
const LOG = 2;
const CALL = 3;
const FAILURE = 4;
const DONE = 5;
const ASK = 6;
const NO_VALUE = 7;
const ANSWER = 16;
const CELL = 17;
const INTERRUPT = 18;
const HEAD = 5; // u32 n | u8 kind

// What the program may spoil is taken before it runs. Of methods that is function with
// the object as its first argument.
const method = (f) => Function.prototype.call.bind(f);
const { allocUnsafe, allocUnsafeSlow, byteLength } = Buffer;
const { parse } = JSON;
const copy = method(Buffer.prototype.copy);
const includes = method(String.prototype.includes);
const read = method(Buffer.prototype.toString);
const write = method(Buffer.prototype.write);

function putU32(bytes, n, at) {
  bytes[at] = n >>> 24;
  bytes[at + 1] = n >>> 16;
  bytes[at + 2] = n >>> 8;
  bytes[at + 3] = n;
}

const getU32 = (bytes, at) => ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;

// Makes a frame of some bytes and a text.
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

const USUAL = 64 << 10; // bytes of a buffer, and of a pipe
const SMALL = 1 << 10; // characters that are not counted before they are written

// Calls on their way out, one behind the other in memory that is used again.
class Frames {
  #buffer = allocUnsafeSlow(USUAL);
  #end = 0;

  get length() {
    return this.#end;
  }

  // Returns how many bytes the arguments have. The kind is CALL or ASK.
  addCall(kind, call, func, json) {
    const begin = this.#end + HEAD + 8;
    this.#makeRoom(begin + (json.length > SMALL ? byteLength(json) : 3 * json.length));
    const bytes = this.#buffer;
    const size = write(bytes, json, begin);
    putU32(bytes, size + HEAD + 4, this.#end);
    bytes[this.#end + 4] = kind;
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

  // Has all that there is written, by a function of a buffer and of how much of it counts.
  flush(write) {
    const [bytes, end] = [this.#buffer, this.#end];
    this.#end = 0;
    if (bytes.length > USUAL) this.#buffer = allocUnsafeSlow(USUAL);
    write(bytes, end);
  }
}

// Reads the frame between two places of a buffer.
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

// Takes bytes as they come, and returns the frames that they complete.
class Decoder {
  #part = null; // the first bytes of a frame, in a buffer for all of it, or for its head
  #have = 0; // bytes of it

  // Takes the first n bytes of a buffer, which the caller may use again.
  push(bytes, n = bytes.length) {
    const frames = [];
    let at = this.#part === null ? 0 : this.#complete(bytes, n, frames);
    while (n - at >= HEAD) {
      const end = at + 4 + getU32(bytes, at);
      if (end > n) break;
      frames.push(decode(bytes, at, end));
      at = end;
    }
    if (at < n) {
      this.#part = allocUnsafe(n - at < HEAD ? HEAD : 4 + getU32(bytes, at));
      this.#have = copy(bytes, this.#part, 0, at, n);
    }
    return frames;
  }

  // What there is of a frame, for restore: from there push can take the same bytes again.
  save() {
    return [this.#part, this.#have];
  }

  restore([part, have]) {
    this.#part = part;
    this.#have = have;
  }

  // Goes on with the frame that has begun, and returns how many bytes were for it.
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
        frames.push(decode(part, 0, size));
        return at;
      }
      this.#part = allocUnsafe(size); // it was the head alone
      copy(part, this.#part);
    }
  }
}

// What JSON lacks is an object with one of these names, which stand in no honest data.
const BYTES = '\0bytes';
const DATE = '\0date';

function revive(_, value) {
  if (value !== null && typeof value === 'object') {
    if (typeof value[BYTES] === 'string') return new Uint8Array(Buffer.from(value[BYTES], 'base64'));
    if (typeof value[DATE] === 'string') return new Date(value[DATE]);
  }
  return value;
}

// Reads a value of the host's.
function fromHost(json) {
  return includes(json, '"\\u0000') ? parse(json, revive) : parse(json);
}

module.exports = { ANSWER, ASK, CALL, CELL, Decoder, Frames, INTERRUPT, VERSION, encodeDone, encodeFailure, encodeLog, encodeNoValue, encodeValue, fromHost };
delete require.cache[__filename];
