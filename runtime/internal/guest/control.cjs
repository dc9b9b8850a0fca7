// The run's end of the control channel: values and lines go out, calls of host functions
// go out and their answers come in. It is a convenience for the program, not a guard:
// the host believes nothing that comes out of here.
'use strict';

const { readSync, writeSync } = require('node:fs');
const { isRefusal, nameOfArguments, toJSON } = require('./values.cjs');
const { ANSWER, ASK, CALL, CELL, Decoder, Frames, INTERRUPT, encodeValue, fromHost } = require('./wire.cjs');

const OUT = 3;
const IN = 5;
const MOST_IN_FLIGHT = 256; // asynchronous calls that the host has; further ones wait here
const MOST_BYTES = 32 << 20; // of their arguments, but for the last of them
const MOST_AT_ONCE = 32 << 10; // bytes of calls that wait for the end of a tick

// What the program may spoil is taken before it runs. Not all is: what it spoils then is
// its own calls.
const { Error, Promise, RangeError, TypeError } = globalThis;
const { stringify } = JSON;
const { captureStackTrace } = Error;
const { defineProperty } = Object;
const { allocUnsafeSlow, byteLength } = Buffer;
const { nextTick } = process;
const wait = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);

function writeAll(bytes, end = bytes.length) {
  for (let at = 0; at < end; ) {
    try {
      at += writeSync(OUT, bytes, at, end - at);
    } catch (err) {
      if (err.code !== 'EAGAIN') throw err;
      wait(); // the program made the pipe non-blocking
    }
  }
}

function makeError(Kind, message, code) {
  const err = new Kind(message);
  if (code) defineProperty(err, 'code', { __proto__: null, value: code, writable: true, enumerable: true, configurable: true });
  return err;
}

const closed = () => makeError(Error, 'the host takes no more calls of this program', 'ERR_HOST_CLOSED');
const interrupted = () => makeError(Error, 'the host function was not waited for: the cell was interrupted', 'ERR_INTERRUPTED');

// What came of a call.
function open({ failed, json }) {
  const value = fromHost(json);
  return failed ? { value: null, error: makeError(Error, value.message, value.code) } : { value, error: null };
}

// Calls of host functions. A synchronous one waits in the kernel, and nothing else of
// the program goes on. Asynchronous ones go by the event loop. Both may be under way at
// once: whoever reads hands over what is not for him.
class Calls {
  #decoder = new Decoder();
  #buffer = allocUnsafeSlow(64 << 10);
  #frames = new Frames(); // calls that are sent with the next tick, or before the next synchronous one
  #last = 0; // number of the last call
  #answers = new Map(); // number -> what came for a call that waits in the kernel
  #pending = new Map(); // number -> what settles a call that waits in the event loop
  #bytes = 0; // of their arguments
  #first = null; // asynchronous calls that have no number yet, each with the next
  #latest = null;
  #socket = null; // from the first asynchronous call on
  #referenced = false;
  #closed = false;
  #stopped = false; // what waits in the kernel is to give up
  #arrived = 0; // bytes in the buffer that the decoder has not taken; only while a call waits in the kernel
  #before; // the decoder's state then
  #inbox = []; // frames that are not handed over yet
  onCell = null;
  #wanted = false; // the event loop waits for cells

  #next() {
    do this.#last = (this.#last + 1) >>> 0;
    while (this.#pending.has(this.#last));
    return this.#last;
  }

  callNow(func, json) {
    const number = this.#next();
    this.#answers.set(number, null);
    this.#frames.addCall(ASK, number, func, json);
    this.#flush();
    try {
      return this.#await(number);
    } finally {
      this.#answers.delete(number);
    }
  }

  #await(number) {
    const handle = this.#socket?._handle;
    handle?.setBlocking(true);
    this.#stopped = false;
    try {
      for (let answer; ; ) {
        if ((answer = this.#answers.get(number))) return answer;
        if (this.#closed) throw closed();
        if (this.#stopped) throw interrupted();
        this.#before = this.#decoder.save();
        this.#arrived = this.#read();
        if (this.#arrived === 0) this.#end();
        else this.#take(this.#arrived);
      }
    } finally {
      handle?.setBlocking(false);
    }
  }

  #read() {
    for (;;) {
      try {
        return readSync(IN, this.#buffer, 0, this.#buffer.length, null);
      } catch (err) {
        if (err.code !== 'EAGAIN') return 0; // the program closed it
        wait();
      }
    }
  }

  callLater(func, json, resolve, reject) {
    const call = { func, json, size: 0, resolve, reject, next: null };
    if (this.#first === null) this.#first = call;
    else this.#latest.next = call;
    this.#latest = call;
    this.#fill();
  }

  // Sends as many calls as may be under way.
  #fill() {
    for (let call; (call = this.#first) !== null && this.#pending.size < MOST_IN_FLIGHT && this.#bytes < MOST_BYTES; ) {
      this.#first = call.next;
      const number = this.#next();
      this.#pending.set(number, call);
      if (this.#frames.length === 0) nextTick(() => this.#flush());
      this.#bytes += call.size = this.#frames.addCall(CALL, number, call.func, call.json);
      call.json = null;
      if (this.#frames.length > MOST_AT_ONCE) this.#flush();
    }
    this.#listen();
  }

  #flush() {
    if (this.#frames.length === 0) return;
    try {
      this.#frames.flush(writeAll);
    } catch {
      this.#end();
    }
  }

  // Has the event loop read as long as something waits for it.
  #listen() {
    try {
      if (this.#socket === null) this.#open();
    } catch {
      return this.#end(); // it is none any more
    }
    const wanted = this.#pending.size > 0 || this.#wanted;
    if (wanted === this.#referenced) return;
    this.#referenced = wanted;
    if (wanted) this.#socket.ref();
    else this.#socket.unref();
  }

  #open() {
    const { Socket } = require('node:net');
    const callback = (n) => (this.#take(n), true);
    this.#socket = new Socket({ fd: IN, readable: true, writable: false, onread: { buffer: this.#buffer, callback } });
    this.#socket.on('error', () => this.#end()).on('close', () => this.#end());
    this.#referenced = true;
  }

  // Takes in what was read.
  #take(n) {
    const inbox = this.#inbox.concat(this.#decoder.push(this.#buffer, n));
    this.#arrived = 0;
    this.#inbox = inbox;
    this.#handOver();
  }

  // The program may call again amid it, and be handed over more.
  #handOver() {
    let settled = false;
    for (let frame; (frame = this.#inbox.shift()) !== undefined; ) {
      const call = frame.kind === ANSWER ? this.#pending.get(frame.call) : undefined;
      if (call !== undefined) {
        this.#pending.delete(frame.call);
        this.#bytes -= call.size;
        const { value, error } = open(frame);
        if (error) call.resolve(raise(error));
        else call.resolve(value);
        settled = true;
      } else if (this.#answers.get(frame.call) === null) this.#answers.set(frame.call, frame);
      else if (frame.kind === CELL || frame.kind === INTERRUPT) this.onCell?.(frame);
    }
    if (settled) this.#fill();
  }

  // Goes on after SIGINT has ended what was called, wherever that was.
  recover() {
    this.#socket?._handle?.setBlocking(false);
    this.#answers.clear();
    if (this.#arrived > 0) {
      this.#decoder.restore(this.#before);
      this.#take(this.#arrived);
    }
    this.#handOver();
    this.#fill();
    this.#flush();
  }

  // The host will answer no more, or not be heard.
  #end() {
    this.#closed = true;
    const calls = [...this.#pending.values()];
    for (let call = this.#first; call !== null; call = call.next) calls.push(call);
    this.#pending.clear();
    this.#first = null;
    for (const { reject } of calls) reject(closed());
  }

  // Has cells, and interruptions of them, handed over.
  cells(onCell) {
    this.onCell = onCell;
    this.wait(true);
  }

  // Says whether the event loop waits for cells, too.
  wait(wanted) {
    this.#wanted = wanted;
    this.#listen();
  }

  // Has a call that waits in the kernel end with an error.
  stop() {
    this.#stopped = true;
  }
}

let calls;
const theCalls = () => (calls ??= new Calls());

function argumentsOf(args, limit, caller) {
  let text;
  try {
    text = toJSON(args, nameOfArguments);
  } catch (err) {
    throw refused(err, caller);
  }
  if (text?.[0] !== '[') throw own(new TypeError('the arguments are no array: Array.prototype.toJSON says so'), caller);
  const size = 3 * text.length > limit ? byteLength(text) : 0;
  if (size > limit) throw own(new RangeError(`the arguments have ${size} bytes of JSON, the limit is ${limit}`), caller);
  return text;
}

// Gives an error the stack of who called f.
function own(err, f) {
  if (err instanceof Error) captureStackTrace(err, f);
  return err;
}

// Gives an error about a value that has no JSON the stack of who called f. An error of a
// toJSON tells where that failed.
const refused = (err, f) => (isRefusal(err) ? own(err, f) : err);

// Throws an error that has the stack of who awaits it. The promise that was resolved with
// this one knows it two ticks later. To note the stack of each call instead takes as long
// as the call.
async function raise(err) {
  await null;
  await null;
  throw own(err, raise);
}

// A host function as the program has it.
function makeFunction(name, index, limit) {
  const call = (...args) => {
    const { value, error } = open(theCalls().callNow(index, argumentsOf(args, limit, call)));
    if (error) throw own(error, call);
    return value;
  };
  const later = (...args) =>
    new Promise((resolve, reject) => theCalls().callLater(index, argumentsOf(args, limit, later), resolve, reject));
  defineProperty(call, 'name', { value: name });
  defineProperty(later, 'name', { value: `${name}.async` });
  defineProperty(call, 'async', { value: later });
  return call;
}

// Puts a function where its path leads to, through objects that are made if missing.
function place(path, func) {
  let at = globalThis;
  for (const name of path.slice(0, -1)) {
    if (!Object.hasOwn(at, name)) defineProperty(at, name, { value: {}, writable: true, enumerable: true, configurable: true });
    at = at[name];
  }
  defineProperty(at, path.at(-1), { value: func, writable: true, enumerable: true, configurable: true });
}

// Gives the program its globals: the host's values, then its functions.
function defineGlobals({ globals, functions = [], args }) {
  for (const [name, value] of Object.entries(globals ? fromHost(globals) : {})) {
    defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });
  }
  const known = new Map();
  functions.forEach((path, index) => {
    const func = makeFunction(path.at(-1), index, args);
    known.set(path.join('.'), func);
    place(path, func);
  });
  if (functions.length === 0) return;
  const find = (name) => {
    const func = known.get(String(name));
    if (func) return func;
    throw makeError(TypeError, `there is no host function ${stringify(String(name))}`, 'ERR_NO_FUNCTION');
  };
  const callBinding = (name, input) => find(name)(input);
  defineProperty(callBinding, 'async', { value: async (name, input) => find(name).async(input) });
  defineProperty(globalThis, 'callBinding', { value: callBinding });
}

function checkSize(size, limit, who) {
  if (size > limit) throw new RangeError(`${who}the value has ${size} bytes of JSON, the limit is ${limit}`);
}

function valueJSON(value, limit, who = '') {
  if (typeof value === 'string') checkSize(value.length + 2, limit, who); // before two copies fill the memory
  const text = toJSON(value) ?? 'null'; // that of undefined
  checkSize(byteLength(text), limit, who);
  return text;
}

function defineReturn(limit) {
  function __return(value) {
    try {
      writeAll(encodeValue(valueJSON(value, limit, '__return: ')));
    } catch (err) {
      throw own(err, __return);
    }
  }
  defineProperty(globalThis, '__return', { value: __return });
}

// Gives the program what its host has for it.
function control(head) {
  defineGlobals(head);
  if (head.value > 0 && !head.evaluate && !head.context) defineReturn(head.value);
}

module.exports = { control, defineGlobals, isRefusal, refused, theCalls, toJSON, valueJSON, writeAll };
delete require.cache[__filename];
