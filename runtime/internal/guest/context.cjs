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

const { AsyncLocalStorage } = require('node:async_hooks');
const { onInit } = require('node:v8').promiseHooks;
const { Exports } = require('./commonjs.cjs');
const { complete, saveNodeGetters } = require('./complete.cjs');
const { refused, writeAll } = require('./control.cjs');
const { captureConsole, valueFrame } = require('./evaluate.cjs');
const { failureFrame } = require('./failure.cjs');
const { Interrupts } = require('./interrupt.cjs');
const { Error, Object, Promise, Proxy, SafeSet, String, SyntaxError, TypeError, apply, method, parse, shift, slice, split, startsWith, stringify, textIncludes } = require('./intrinsics.cjs');
const { CELL, encodeDone, encodeValue } = require('./wire.cjs');

const { defineProperty, hasOwn } = Object;
const { setImmediate } = globalThis;
const { listenerCount } = process;
const enterWith = method(AsyncLocalStorage.prototype.enterWith);
const storeOf = method(AsyncLocalStorage.prototype.getStore);
const { captureStackTrace } = Error;
const GROUP = 'cell'; // of the inspector's remote objects

// Makes import() in cells work as in modules. To Node, cells belong to no script or module.
function allowImports(internalBinding) {
  const { host_defined_option_symbol } = internalBinding('util').privateSymbols;
  globalThis[host_defined_option_symbol] = internalBinding('symbols').vm_dynamic_import_default_internal;
}

// Checks that a module has the names that a cell imports from it.
function __named(module, specifier, ...names) {
  for (let i = 0; i < names.length; i++) {
    if (names[i] in module) continue;
    const err = new SyntaxError(`The requested module '${specifier}' does not provide an export named '${names[i]}'`);
    captureStackTrace(err, __named);
    throw err;
  }
  return module;
}

// Assignments to constants of cells become ones to members of this object: constants are variables
// to V8, which can be declared again in any form.
const constants = new Proxy({ __proto__: null }, {
  __proto__: null,
  set: function set() {
    const err = new TypeError('Assignment to constant variable.');
    captureStackTrace(err, set);
    throw err;
  },
});

// A session of the inspector protocol. Node's own class depends on what programs can replace.
class Inspector {
  #connection;
  #last = 0;
  #answer;

  constructor({ Connection }) {
    this.#connection = new Connection((text) => {
      const message = parse(text);
      if (message.id === this.#last) this.#answer = message.result;
    });
  }

  // Returns the answer, or undefined if it comes later. params is JSON.
  post(name, params = '{}') {
    this.#answer = undefined;
    this.#connection.dispatch(`{"id":${++this.#last},"method":"${name}","params":${params}}`);
    return this.#answer;
  }
}

class Context {
  #inspector;
  #cells = new AsyncLocalStorage(); // the cell whose code runs, or has caused what runs
  #calls;
  #defineGlobals;
  #setBounds;
  #idleBounds; // of lines between cells
  #print = console.error;
  #exported;
  #keepsLast; // globalThis._ is the value of the last cell
  #last;
  #interrupts;
  #unsettled = new SafeSet(); // promises of cells
  #cell = null; // in progress
  #installTypeScript; // null once it is installed
  #interrupted = 0; // number of the last cell that was interrupted
  #waiting = [];

  constructor({ path, context: bounds }, internals, calls, { defineGlobals, installTypeScript }) {
    this.#keepsLast = bounds.last;
    if (bounds.last) this.#defineLast();
    saveNodeGetters();
    const { internalBinding } = internals;
    allowImports(internalBinding);
    this.#inspector = new Inspector(internalBinding('inspector'));
    this.#interrupts = new Interrupts(internals, (err) => this.#interruptedAt(err));
    this.#calls = calls;
    this.#defineGlobals = defineGlobals;
    this.#installTypeScript = installTypeScript;
    this.#idleBounds = bounds;
    this.#setBounds = captureConsole(bounds);
    this.#print = console.error;
    this.#exported = new Exports(path);
    defineProperty(globalThis, '__named', { value: __named });
    defineProperty(globalThis, '__const', { value: constants });
    process.on('uncaughtException', (err) => this.#uncaught(err));
    process.on('beforeExit', () => this.#fail(this.#cell, unsettled()));
    calls.receiveCells((frame) => this.#receive(frame));
    writeAll(encodeDone(0)); // ready
  }

  #defineLast() {
    const set = (value) => defineProperty(globalThis, '_', { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    defineProperty(globalThis, '_', { get: () => this.#last, set, configurable: true });
  }

  #receive(frame) {
    if (frame.kind === CELL) {
      this.#waiting[this.#waiting.length] = frame;
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
    const { cell: number, text } = shift(this.#waiting);
    const cell = { __proto__: null, number, synchronous: true, outcome: null, ...parse(text) };
    this.#cell = cell;
    if (this.#interrupted === number) return this.#finish(cell);
    if (cell.complete !== undefined) return this.#complete(cell);
    if (this.#installTypeScript && (textIncludes(cell.code, './') || textIncludes(cell.code, 'ts'))) {
      this.#installTypeScript();
      this.#installTypeScript = null;
    }
    this.#setBounds(cell);
    this.#calls.waitForCells(false); // so that beforeExit detects a cell that waits for nothing
    try {
      this.#exported.clear();
      this.#defineGlobalsOf(cell);
      enterWith(this.#cells, cell); // until the end of this immediate
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
    const { names } = this.#lexical();
    for (let i = 0; i < names.length; i++) {
      if (hasOwn(given, names[i])) throw new TypeError(`the global ${names[i]} can't be given: a cell has declared it by const, let, class or import`);
    }
    this.#defineGlobals(cell);
  }

  // Runs a script until it waits for the event loop. Its result is a promise, the first that
  // is created. The inspector also waits for that promise, and the process dies if it is
  // collected before it is settled: #unsettled keeps it alive.
  #evaluate(cell) {
    const expression = `${cell.code}\n//# sourceURL=${cell.name}`;
    let promise;
    const stop = onInit((made) => {
      promise ??= made;
      stop();
    });
    const answer = this.#inspector.post('Runtime.evaluate', `{"expression":${stringify(expression)},"replMode":true,"objectGroup":"${GROUP}"}`);
    stop();
    if (!promise) throw syntaxError(answer.exceptionDetails, cell.name);
    defineProperty(promise, 'constructor', { __proto__: null, value: Promise }); // which await looks up
    this.#unsettled.add(promise);
    this.#settle(promise, cell);
    this.#interrupts.finish();
  }

  // Waits for the value of a cell.
  async #settle(promise, cell) {
    let thrown = false;
    let value;
    try {
      value = await this.#valueOf(await promise, cell);
    } catch (err) {
      thrown = true;
      value = err;
    }
    this.#unsettled.delete(promise);
    cell.outcome = { thrown, value };
    if (!cell.synchronous) this.#conclude(cell);
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
    this.#inspector.post('Runtime.releaseObjectGroup', `{"objectGroup":"${GROUP}"}`);
    this.#inspector.post('Runtime.discardConsoleEntries');
    writeAll(encodeDone(cell.number));
  }

  // An uncaught error belongs to the cell that has caused it.
  #uncaught(err) {
    if (apply(listenerCount, process, ['uncaughtException']) > 1) return; // a cell has its own handler
    const cause = storeOf(this.#cells) ?? this.#cell;
    if (cause !== null && cause === this.#cell) this.#fail(cause, err);
    else this.#print(cause === null ? 'Uncaught' : `Uncaught (in ${cause.name})`, err);
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
    const { names } = this.#inspector.post('Runtime.globalLexicalScopeNames');
    const read = (name) =>
      this.#interrupts.receive((self) => {
        const expression = stringify(`${self}(${name})`); // throws if the variable is not initialized
        this.#inspector.post('Runtime.evaluate', `{"expression":${expression},"objectGroup":"${GROUP}"}`);
      });
    return { names, read };
  }
}

// Returns V8's syntax error, with its position in the script.
function syntaxError({ exception, lineNumber, columnNumber }, name) {
  const first = split(exception.description, '\n')[0];
  const err = new SyntaxError(startsWith(first, 'SyntaxError: ') ? slice(first, 13) : first);
  err.stack = `${first}\n    at ${name}:${lineNumber + 1}:${columnNumber + 1}`;
  return err;
}

// Adds the position 0:0, which the host recognizes as the value of the cell.
function placed(err, { name }) {
  if (err instanceof Error && !textIncludes(String(err.stack), name)) err.stack += `\n    at ${name}:0:0`;
  return err;
}

function unsettled() {
  const err = new Error('the code awaits a promise that nothing settles');
  const hidden = (value) => ({ __proto__: null, value, writable: true, configurable: true });
  defineProperty(err, 'name', hidden('UnsettledError'));
  return defineProperty(err, 'stack', hidden(''));
}

module.exports = { context: (...args) => new Context(...args) };
