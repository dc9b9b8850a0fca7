// Turns a run into a context: it receives cells on descriptor 5, and evaluates them in order, in
// a scope that they share. V8's REPL mode allows repeated declarations of const and let, and
// await at the top level. Only the inspector protocol offers that mode; the session is within
// this process.
//
// A cell is JSON: {"code", "name",        the script, and its apparent file name
//     "value", "form", "explicit",        as in the program's head, and its evaluate
//     "logs", "logLength",                limits of its lines
//     "globals"}                          as in the head
// or a request for completions: {"complete"}, see complete.cjs.
//
//  cell -> the script -- await -- its promise is settled -- value or failure -> done
//
// An interruption stops the wait for the promise. SIGINT terminates running code: see
// interrupt.cjs.
'use strict';

const { Session } = require('node:inspector');
const { onInit } = require('node:v8').promiseHooks;
const { Exports } = require('./commonjs.cjs');
const { complete, saveNodeGetters } = require('./complete.cjs');
const { captureConsole, failureFrame, refused, valueFrame, writeAll } = require('./evaluate.cjs');
const { ownVariables } = require('./inside.cjs');
const { Interrupts } = require('./interrupt.cjs');
const { CELL, encodeDone, encodeValue } = require('./wire.cjs');

const { parse, stringify } = JSON;
const { defineProperty, hasOwn } = Object;
const { captureStackTrace } = Error;
const GROUP = 'cell'; // of the inspector's remote objects

// Makes import() in cells work as in modules. To Node, cells belong to no script or module.
function allowImports(internalBinding) {
  const { host_defined_option_symbol } = internalBinding('util').privateSymbols;
  globalThis[host_defined_option_symbol] = internalBinding('symbols').vm_dynamic_import_default_internal;
}

// Checks that a module has the names that a cell imports from it.
function __named(module, specifier, ...names) {
  for (const name of names) {
    if (name in module) continue;
    const err = new SyntaxError(`The requested module '${specifier}' does not provide an export named '${name}'`);
    captureStackTrace(err, __named);
    throw err;
  }
  return module;
}

class Context {
  #session = new Session();
  #calls;
  #defineGlobals;
  #setBounds;
  #idleBounds; // of lines between cells
  #print = console.error;
  #exported;
  #keepsLast; // globalThis._ is the value of the last cell
  #last;
  #interrupts;
  #unsettled = new Set(); // promises of cells
  #cell = null; // in progress
  #interrupted = 0; // number of the last cell that was interrupted
  #waiting = [];

  constructor({ path, context: bounds }, calls, defineGlobals) {
    this.#keepsLast = bounds.last;
    if (bounds.last) this.#defineLast();
    saveNodeGetters();
    const { internalBinding } = ownVariables(['internalBinding']);
    allowImports(internalBinding);
    this.#interrupts = new Interrupts(internalBinding, (err) => this.#interruptedAt(err));
    this.#calls = calls;
    this.#defineGlobals = defineGlobals;
    this.#idleBounds = bounds;
    this.#setBounds = captureConsole(bounds);
    this.#print = console.error;
    this.#session.connect();
    this.#exported = new Exports(path);
    defineProperty(globalThis, '__named', { value: __named });
    process.on('uncaughtException', (err) => this.#uncaught(err));
    process.on('beforeExit', () => this.#fail(this.#cell, unsettled()));
    calls.receiveCells((frame) => this.#receive(frame));
    writeAll(encodeDone(0)); // ready
  }

  #defineLast() {
    const set = (value) => defineProperty(globalThis, '_', { value, writable: true, enumerable: true, configurable: true });
    defineProperty(globalThis, '_', { get: () => this.#last, set, configurable: true });
  }

  #post(method, params, callback = () => {}) {
    this.#session.post(method, params, callback);
  }

  #receive(frame) {
    if (frame.kind === CELL) {
      this.#waiting.push(frame);
      setImmediate(() => this.#begin()); // not during a call of a host function
      return;
    }
    this.#interrupted = frame.cell;
    const cell = this.#cell;
    if (cell?.number !== frame.cell) return;
    if (!cell.synchronous) this.#finish(cell);
    this.#calls.stop();
  }

  #begin() {
    const { cell: number, text } = this.#waiting.shift();
    const cell = { number, synchronous: true, outcome: null, ...parse(text) };
    this.#cell = cell;
    if (this.#interrupted === number) return this.#finish(cell);
    if (cell.complete !== undefined) return this.#complete(cell);
    this.#setBounds(cell);
    this.#calls.waitForCells(false); // so that beforeExit detects a cell that waits for nothing
    try {
      this.#exported.clear();
      this.#defineGlobalsOf(cell);
      this.#interrupts.run(() => this.#evaluate(cell));
    } catch (err) {
      this.#fail(cell, err);
    }
    cell.synchronous = false;
    if (cell.outcome) this.#conclude(cell);
    if (this.#interrupted === number) this.#finish(cell);
  }

  // Defines the globals of a cell. Declarations of earlier cells would hide them.
  #defineGlobalsOf(cell) {
    if (!cell.globals) return;
    const given = parse(cell.globals);
    const hidden = this.#lexical().names.find((name) => hasOwn(given, name));
    if (hidden) throw new TypeError(`the global ${hidden} can't be given: a cell has declared it by const, let, class or import`);
    this.#defineGlobals(cell);
  }

  // Runs a script until it waits for the event loop. Its result is a promise, the first that
  // is created. The inspector also waits for that promise, and the process dies if it is
  // collected before it is settled: #unsettled keeps it alive.
  #evaluate(cell) {
    const expression = `${cell.code}\n//# sourceURL=${cell.name}`;
    let promise, refused;
    const stop = onInit((made) => {
      promise ??= made;
      stop();
    });
    this.#post('Runtime.evaluate', { expression, replMode: true, objectGroup: GROUP }, (err, answer) => (refused = answer?.exceptionDetails));
    stop();
    if (!promise) throw syntaxError(refused, cell.name);
    this.#unsettled.add(promise);
    const settle = (thrown, value) => {
      this.#unsettled.delete(promise);
      cell.outcome = { thrown, value };
      if (!cell.synchronous) this.#conclude(cell);
    };
    promise.then((result) => this.#valueOf(result, cell)).then((value) => settle(false, value), (err) => settle(true, err));
    this.#interrupts.finish();
  }

  // The value of a cell without a value is its exports.
  async #valueOf(result, cell) {
    const value = await result['.repl_result'];
    if (value !== undefined) return value;
    cell.explicit = false; // exports may be functions
    return this.#exported.get();
  }

  #conclude(cell) {
    if (cell !== this.#cell) return;
    const { thrown, value } = cell.outcome;
    if (thrown) return this.#fail(cell, value);
    if (this.#keepsLast) this.#last = value;
    try {
      const frame = this.#interrupts.run(() => this.#frameOf(value, cell));
      if (frame) writeAll(frame);
    } catch (err) {
      return this.#fail(cell, err);
    }
    this.#finish(cell);
  }

  // SIGINT has terminated code of the cell, or code that an earlier one has left running.
  #interruptedAt(err) {
    this.#calls.recover();
    this.#fail(this.#cell, err);
  }

  #frameOf(value, cell) {
    try {
      return valueFrame(value, cell);
    } catch (err) {
      throw placed(refused(err, valueFrame), cell);
    }
  }

  #fail(cell, err) {
    if (cell === null || cell !== this.#cell) return;
    try {
      writeAll(this.#interrupts.run(() => failureFrame(err)));
    } catch {
      // the cell ends without a failure frame
    }
    this.#finish(cell);
  }

  #finish(cell) {
    if (cell !== this.#cell) return;
    this.#cell = null;
    this.#calls.waitForCells(true);
    this.#setBounds(this.#idleBounds);
    this.#post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
    this.#post('Runtime.discardConsoleEntries');
    writeAll(encodeDone(cell.number));
  }

  // An uncaught error belongs to the cell in progress, unless its stack names only earlier
  // ones.
  #uncaught(err) {
    if (process.listenerCount('uncaughtException') > 1) return; // a cell has its own handler
    const cell = this.#cell;
    const named = String(err?.stack).match(/\bcell-\d+\.js\b/g);
    if (cell && (!named || named.includes(cell.name))) this.#fail(cell, err);
    else this.#print('Uncaught', err);
  }

  // Replies to a request for completions.
  #complete(cell) {
    try {
      const names = this.#interrupts.run(() => complete(cell.complete, this.#lexical()));
      writeAll(encodeValue(stringify(names)));
    } catch {
      // no reply: no completions
    }
    this.#finish(cell);
  }

  // Returns the names that cells have declared with const, let and class.
  #lexical() {
    let names;
    this.#post('Runtime.globalLexicalScopeNames', {}, (err, answer) => (names = answer.names));
    const read = (name) =>
      this.#interrupts.receive((self) => {
        const expression = `${self}(${name})`; // throws if the variable is not initialized
        this.#post('Runtime.evaluate', { expression, objectGroup: GROUP });
      });
    return { names, read };
  }
}

// Returns V8's syntax error, with its position in the script.
function syntaxError({ exception, lineNumber, columnNumber }, name) {
  const [first] = exception.description.split('\n');
  const err = new SyntaxError(first.replace(/^SyntaxError: /, ''));
  err.stack = `${first}\n    at ${name}:${lineNumber + 1}:${columnNumber + 1}`;
  return err;
}

// Adds the position 0:0, which the host recognizes as the value of the cell.
function placed(err, { name }) {
  if (err instanceof Error && !String(err.stack).includes(name)) err.stack += `\n    at ${name}:0:0`;
  return err;
}

function unsettled() {
  return Object.assign(new Error('the code awaits a promise that nothing settles'), { name: 'UnsettledError', stack: '' });
}

module.exports = { context: (...args) => new Context(...args) };
delete require.cache[__filename];
