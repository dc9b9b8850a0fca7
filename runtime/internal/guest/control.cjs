// The run's end of the control channel: it sends values, console lines and calls of host
// functions, and receives the results of the calls. It is a convenience for the program, not a
// security boundary: the host trusts nothing that it sends.
'use strict';

const { readSync, writeSync } = require('node:fs');
const { Error, Object, Promise, RangeError, SafeMap, String, TypeError, concat, includes, join, method, shift, stringify } = require('./intrinsics.cjs');
const { allowBigInts, isRefusal, nameOfArguments, toJSON } = require('./values.cjs');
const { ANSWER, CELL, Decoder, Frames, INTERRUPT, encodeAnswer, encodeTranslation, encodeValue, fromHost } = require('./wire.cjs');

const OUT = 3;
const IN = 5;
const MAX_IN_FLIGHT = 256; // asynchronous calls at the host; further ones are queued here
const MAX_BYTES = 32 << 20; // of their arguments, not counting the last one
const MAX_BATCH = 32 << 10; // bytes of calls that are batched until the end of a tick

const { captureStackTrace } = Error;
const { defineProperty, entries, hasOwn } = Object;
const { allocUnsafeSlow, byteLength } = Buffer;
const { nextTick } = process;
const wait = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);

function writeAll(bytes, end = bytes.length) {
  for (let at = 0; at < end; ) {
    try {
      at += writeSync(OUT, bytes, at, end - at);
    } catch (err) {
      if (err.code !== 'EAGAIN') throw err;
      wait(); // the program has made the pipe non-blocking
    }
  }
}

function makeError(Kind, message, code) {
  const err = new Kind(message);
  if (code) define(err, 'code', code);
  return err;
}

const closed = () => makeError(Error, 'the host takes no more calls of this program', 'ERR_HOST_CLOSED');
const interrupted = () => makeError(Error, 'the host function was not waited for: the cell was interrupted', 'ERR_INTERRUPTED');

// Decodes the result of a call.
function decodeResult({ failed, json }) {
  const value = fromHost(json);
  return failed ? { value: null, error: makeError(Error, value.message, value.code) } : { value, error: null };
}

// Calls of host functions. A synchronous call blocks in read, and nothing else in the
// program runs. Asynchronous calls use the event loop. Both kinds may be in progress together:
// each reader delivers the frames that belong to the other.
class Calls {
  #source; // reads from the host into a buffer, and returns the number of bytes
  #decoder = new Decoder();
  #buffer = allocUnsafeSlow(64 << 10);
  #frames = new Frames(); // calls to send with the next tick, or before the next synchronous call
  #last = 0; // number of the last call
  #results = new SafeMap(); // number -> result of a synchronous call, null until it arrives
  #pending = new SafeMap(); // number -> asynchronous call at the host
  #bytes = 0; // of their arguments
  #first = null; // queue of asynchronous calls that have no number yet, linked by next
  #latest = null;
  #socket = null; // created by the first asynchronous call
  #ref; // methods of the socket
  #unref;
  #referenced = false;
  #closed = false;
  #stopped = false; // the synchronous call must fail
  #unread = 0; // bytes in the buffer that the decoder has not processed, during a synchronous call
  #decoderState; // before those bytes
  #inbox = []; // frames that are not delivered yet
  onCell = null;
  #waitsForCells = false; // cells keep the event loop alive

  constructor(source) {
    this.#source = source;
  }

  #next() {
    do this.#last = (this.#last + 1) >>> 0;
    while (this.#pending.has(this.#last));
    return this.#last;
  }

  callNow(func, json) {
    return this.#ask((number) => {
      this.#frames.addCall(number, func, json);
      this.#flush();
    });
  }

  // Returns the JavaScript of a file, and whether it is an ES module.
  translate(format, path, config, source) {
    const { value, error } = decodeResult(this.#ask((number) => writeAll(encodeTranslation(number, format, path, config, source))));
    if (error) throw error;
    return value;
  }

  // Sends a request, and waits for the answer.
  #ask(send) {
    const number = this.#next();
    this.#results.set(number, null);
    try {
      send(number);
      return this.#await(number);
    } finally {
      this.#results.delete(number);
    }
  }

  #await(number) {
    const handle = this.#socket?._handle;
    handle?.setBlocking(true);
    this.#stopped = false;
    try {
      for (let result; ; ) {
        if ((result = this.#results.get(number))) return result;
        if (this.#closed) throw closed();
        if (this.#stopped) throw interrupted();
        this.#decoderState = this.#decoder.save();
        this.#unread = this.#read();
        if (this.#unread === 0) this.#close();
        else this.#receive(this.#unread);
      }
    } finally {
      handle?.setBlocking(false);
    }
  }

  #read() {
    for (;;) {
      try {
        return this.#source(this.#buffer);
      } catch (err) {
        if (err.code !== 'EAGAIN') return 0; // the program has closed the descriptor
        wait();
      }
    }
  }

  callLater(func, json, resolve, reject) {
    const call = { func, json, size: 0, resolve, reject, next: null };
    if (this.#first === null) this.#first = call;
    else this.#latest.next = call;
    this.#latest = call;
    this.#sendQueued();
  }

  // Sends queued calls up to the limits.
  #sendQueued() {
    for (let call; (call = this.#first) !== null && this.#pending.size < MAX_IN_FLIGHT && this.#bytes < MAX_BYTES; ) {
      this.#first = call.next;
      const number = this.#next();
      this.#pending.set(number, call);
      if (this.#frames.length === 0) nextTick(() => this.#flush());
      this.#bytes += call.size = this.#frames.addCall(number, call.func, call.json);
      call.json = null;
      if (this.#frames.length > MAX_BATCH) this.#flush();
    }
    this.#listen();
  }

  #flush() {
    if (this.#frames.length === 0) return;
    try {
      this.#frames.flush(writeAll);
    } catch {
      this.#close();
    }
  }

  // Keeps the event loop alive while something waits for frames.
  #listen() {
    try {
      if (this.#socket === null) this.#open();
    } catch {
      return this.#close(); // the program has replaced the descriptor
    }
    const needed = this.#pending.size > 0 || this.#waitsForCells;
    if (needed === this.#referenced) return;
    this.#referenced = needed;
    if (needed) this.#ref(this.#socket);
    else this.#unref(this.#socket);
  }

  #open() {
    const { Socket } = require('node:net');
    const on = method(Socket.prototype.on);
    this.#ref = method(Socket.prototype.ref);
    this.#unref = method(Socket.prototype.unref);
    const callback = (n) => (this.#receive(n), true);
    this.#socket = new Socket({ fd: IN, readable: true, writable: false, onread: { buffer: this.#buffer, callback } });
    on(this.#socket, 'error', () => this.#close());
    on(this.#socket, 'close', () => this.#close());
    this.#referenced = true;
  }

  // Decodes and delivers n bytes of the buffer.
  #receive(n) {
    const inbox = concat(this.#inbox, this.#decoder.push(this.#buffer, n));
    this.#unread = 0;
    this.#inbox = inbox;
    this.#deliver();
  }

  // Reentrant: the program may make calls meanwhile, which deliver more frames.
  #deliver() {
    let settled = false;
    for (let frame; (frame = shift(this.#inbox)) !== undefined; ) {
      const call = frame.kind === ANSWER ? this.#pending.get(frame.call) : undefined;
      if (call !== undefined) {
        this.#pending.delete(frame.call);
        this.#bytes -= call.size;
        const { value, error } = decodeResult(frame);
        if (error) call.resolve(raise(error));
        else call.resolve(value);
        settled = true;
      } else if (this.#results.get(frame.call) === null) this.#results.set(frame.call, frame);
      else if (frame.kind === CELL || frame.kind === INTERRUPT) this.onCell?.(frame);
    }
    if (settled) this.#sendQueued();
  }

  // Restores a consistent state after SIGINT has terminated the code, at any point.
  recover() {
    this.#socket?._handle?.setBlocking(false);
    this.#results.clear();
    if (this.#unread > 0) {
      this.#decoder.restore(this.#decoderState);
      this.#receive(this.#unread);
    }
    this.#deliver();
    this.#sendQueued();
    this.#flush();
  }

  // Fails all calls: the host has closed the channel, or the program has.
  #close() {
    this.#closed = true;
    const failed = this.#first;
    this.#first = null;
    this.#pending.forEach(({ reject }) => reject(closed()));
    this.#pending.clear();
    for (let call = failed; call !== null; call = call.next) call.reject(closed());
  }

  // Passes cells and their interruptions to onCell.
  receiveCells(onCell) {
    this.onCell = onCell;
    this.waitForCells(true);
  }

  // Sets whether cells keep the event loop alive.
  waitForCells(waits) {
    this.#waitsForCells = waits;
    this.#listen();
  }

  // Makes the synchronous call in progress fail.
  stop() {
    this.#stopped = true;
  }
}

let calls;
const theCalls = () => (calls ??= new Calls((buffer) => readSync(IN, buffer, 0, buffer.length, null)));

// Runs f in a zygote, where no host answers: synchronous calls return empty objects.
function rehearseCalls(f) {
  let number = 0;
  calls = new Calls((buffer) => encodeAnswer(buffer, ++number, '{}'));
  f();
  calls = undefined;
}

// Hides a toJSON of Array.prototype or Object.prototype, which would replace the list of arguments.
const NO_TO_JSON = { __proto__: null, value: undefined };

function argumentsOf(args, limit, caller) {
  let text;
  try {
    if ('toJSON' in args) defineProperty(args, 'toJSON', NO_TO_JSON);
    text = toJSON(args, nameOfArguments);
  } catch (err) {
    throw refused(err, caller);
  }
  const size = 3 * text.length > limit ? byteLength(text) : 0;
  if (size > limit) throw atCaller(new RangeError(`the arguments have ${size} bytes of JSON, the limit is ${limit}`), caller);
  return text;
}

// Sets the stack of an error to that of the caller of f.
function atCaller(err, f) {
  if (err instanceof Error) captureStackTrace(err, f);
  return err;
}

// Sets the stack of an error about a value without JSON to that of the caller of f. Errors
// thrown by a toJSON keep their stack.
const refused = (err, f) => (isRefusal(err) ? atCaller(err, f) : err);

// Throws an error with the stack of the code that awaits it. The promise that is resolved
// with this one adopts it two ticks later. Capturing the stack at each call instead would
// take as long as the call.
async function raise(err) {
  await null;
  await null;
  throw atCaller(err, raise);
}

// Returns a host function for the program. An asynchronous one is its own async.
function makeFunction(name, index, limit, isAsync) {
  const wait = (...args) => {
    const { value, error } = decodeResult(theCalls().callNow(index, argumentsOf(args, limit, wait)));
    if (error) throw atCaller(error, wait);
    return value;
  };
  const later = (...args) =>
    new Promise((resolve, reject) => theCalls().callLater(index, argumentsOf(args, limit, later), resolve, reject));
  const call = isAsync ? later : wait;
  defineProperty(later, 'name', { value: `${name}.async` });
  defineProperty(call, 'name', { value: name });
  defineProperty(call, 'async', { value: later });
  return call;
}

const define = (object, name, value) => defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

// Defines a function at its path, and creates missing objects.
function defineAt(path, func) {
  let at = globalThis;
  for (let i = 0; i < path.length - 1; i++) {
    if (!hasOwn(at, path[i])) define(at, path[i], {});
    at = at[path[i]];
  }
  define(at, path[path.length - 1], func);
}

// Defines the globals of the program: the host's values, then its functions.
function defineGlobals({ globals, functions = [], async = [], args }) {
  const values = globals ? entries(fromHost(globals)) : [];
  for (let i = 0; i < values.length; i++) define(globalThis, values[i][0], values[i][1]);
  const known = new SafeMap();
  for (let i = 0; i < functions.length; i++) {
    const path = functions[i];
    const func = makeFunction(path[path.length - 1], i, args, includes(async, i));
    known.set(join(path, '.'), func);
    defineAt(path, func);
  }
  if (functions.length === 0 || hasOwn(globalThis, 'callBinding')) return; // the host may have its own
  const find = (name) => {
    const func = known.get(String(name));
    if (func) return func;
    throw makeError(TypeError, `there is no host function ${stringify(String(name))}`, 'ERR_NO_FUNCTION');
  };
  const callBinding = (name, input) => find(name)(input);
  defineProperty(callBinding, 'async', { value: async (name, input) => find(name).async(input) });
  defineProperty(globalThis, 'callBinding', { value: callBinding });
}

function checkSize(size, limit, prefix) {
  if (size > limit) throw new RangeError(`${prefix}the value has ${size} bytes of JSON, the limit is ${limit}`);
}

function valueJSON(value, limit, prefix = '') {
  if (typeof value === 'string') checkSize(value.length + 2, limit, prefix); // before the copies use the memory
  const text = toJSON(value) ?? 'null'; // undefined
  checkSize(byteLength(text), limit, prefix);
  return text;
}

function defineReturn(limit) {
  function __return(value) {
    try {
      writeAll(encodeValue(valueJSON(value, limit, '__return: ')));
    } catch (err) {
      throw atCaller(err, __return);
    }
  }
  defineProperty(globalThis, '__return', { value: __return, configurable: true }); // rehearsals of a zygote delete it
}

// Defines the host's functions and variables for the program.
function control(head) {
  if (head.bigInts) allowBigInts();
  defineGlobals(head);
  if (head.value > 0 && !head.evaluate && !head.context) defineReturn(head.value);
}

module.exports = { control, defineGlobals, rehearseCalls, refused, theCalls, toJSON, valueJSON, writeAll };
