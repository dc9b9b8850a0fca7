// What makes a run a context: it waits for cells on descriptor 5, and evaluates them one
// after the other in a scope that all of them share. V8 has a mode for that, in which
// const and let can be declared again and await stands anywhere. Only the debugger's
// protocol offers it: its session is within this process.
//
// A cell is JSON: {"code", "name",        the script, and the file that it seems to be
//     "value", "form", "explicit",        as in the program's head, and its evaluate
//     "logs", "logLength",                bounds of its lines
//     "globals"}                          as in the head
// or, for who writes one: {"complete"}: see complete.cjs.
//
//  cell -> the script -- await -- its promise is settled -- value or failure -> done
//
// An interruption has nobody wait for the promise any more; SIGINT ends what is busy,
// see interrupt.cjs.
'use strict';

const { Session } = require('node:inspector');
const { onInit } = require('node:v8').promiseHooks;
const { Exports } = require('./commonjs.cjs');
const { complete, noteGlobals } = require('./complete.cjs');
const { captureConsole, failureFrame, refused, valueFrame, writeAll } = require('./evaluate.cjs');
const { ownVariables } = require('./inside.cjs');
const { Interrupts } = require('./interrupt.cjs');
const { CELL, encodeDone, encodeValue } = require('./wire.cjs');

const { parse, stringify } = JSON;
const { defineProperty, hasOwn } = Object;
const { captureStackTrace } = Error;
const GROUP = 'cell'; // of what the debugger's protocol names

// Has import() of cells load as that of modules does: they are nobody's, for Node.
function allowImports(internalBinding) {
  const { host_defined_option_symbol } = internalBinding('util').privateSymbols;
  globalThis[host_defined_option_symbol] = internalBinding('symbols').vm_dynamic_import_default_internal;
}

// An import of names from a module, which is one that can't do without them.
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
  #idleBounds;
  #print = console.error;
  #exported;
  #keepsLast; // globalThis._ is the value of the last cell
  #last;
  #interrupts;
  #unsettled = new Set(); // promises of cells
  #cell = null; // what goes on
  #interrupted = 0; // the number of the last that is to end
  #waiting = [];

  constructor({ path, context: bounds }, calls, defineGlobals) {
    this.#keepsLast = bounds.last;
    if (bounds.last) this.#defineLast();
    noteGlobals();
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
    calls.cells((frame) => this.#take(frame));
    writeAll(encodeDone(0)); // it can begin
  }

  #defineLast() {
    const set = (value) => defineProperty(globalThis, '_', { value, writable: true, enumerable: true, configurable: true });
    defineProperty(globalThis, '_', { get: () => this.#last, set, configurable: true });
  }

  #post(method, params, callback = () => {}) {
    this.#session.post(method, params, callback);
  }

  #take(frame) {
    if (frame.kind === CELL) {
      this.#waiting.push(frame);
      setImmediate(() => this.#begin()); // not amid a call of a host function
      return;
    }
    this.#interrupted = frame.cell;
    const cell = this.#cell;
    if (cell?.number !== frame.cell) return;
    if (!cell.synchronous) this.#end(cell);
    this.#calls.stop();
  }

  #begin() {
    const { cell: number, text } = this.#waiting.shift();
    const cell = { number, synchronous: true, outcome: null, ...parse(text) };
    this.#cell = cell;
    if (this.#interrupted === number) return this.#end(cell);
    if (cell.complete !== undefined) return this.#complete(cell);
    this.#setBounds(cell);
    this.#calls.wait(false); // what the cell waits for may be nothing
    try {
      this.#exported.clear();
      this.#give(cell);
      this.#interrupts.run(() => this.#evaluate(cell));
    } catch (err) {
      this.#fail(cell, err);
    }
    cell.synchronous = false;
    if (cell.outcome) this.#conclude(cell);
    if (this.#interrupted === number) this.#end(cell);
  }

  // Gives a cell its globals. What a cell has declared is found before them.
  #give(cell) {
    if (!cell.globals) return;
    const given = parse(cell.globals);
    const hidden = this.#lexical().names.find((name) => hasOwn(given, name));
    if (hidden) throw new TypeError(`the global ${hidden} can't be given: a cell has declared it by const, let, class or import`);
    this.#defineGlobals(cell);
  }

  // Begins a script, and goes on as far as it needs nobody. What comes of it is a
  // promise, the first that is made. The debugger waits for it, too, and Node dies when
  // it is collected before: whatever is not settled is kept.
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

  // Without a value of its own, a cell's value is what it has exported.
  async #valueOf(result, cell) {
    const value = await result['.repl_result'];
    if (value !== undefined) return value;
    cell.explicit = false; // what is exported may be functions
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
    this.#end(cell);
  }

  // SIGINT has ended something: what the cell does, or what an earlier one has left.
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
      // it is over without a word, then
    }
    this.#end(cell);
  }

  #end(cell) {
    if (cell !== this.#cell) return;
    this.#cell = null;
    this.#calls.wait(true);
    this.#setBounds(this.#idleBounds);
    this.#post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
    this.#post('Runtime.discardConsoleEntries');
    writeAll(encodeDone(cell.number));
  }

  // An error that nobody caught is that of the cell that goes on, unless it names an
  // earlier one.
  #uncaught(err) {
    if (process.listenerCount('uncaughtException') > 1) return; // a cell has a way of its own
    const cell = this.#cell;
    const named = String(err?.stack).match(/\bcell-\d+\.js\b/g);
    if (cell && (!named || named.includes(cell.name))) this.#fail(cell, err);
    else this.#print('Uncaught', err);
  }

  // Finds names for who writes a cell.
  #complete(cell) {
    try {
      const names = this.#interrupts.run(() => complete(cell.complete, this.#lexical()));
      writeAll(encodeValue(stringify(names)));
    } catch {
      // there are none, then
    }
    this.#end(cell);
  }

  // What cells have declared by const, let and class.
  #lexical() {
    let names;
    this.#post('Runtime.globalLexicalScopeNames', {}, (err, answer) => (names = answer.names));
    const read = (name) =>
      this.#interrupts.receive((self) => {
        const expression = `${self}(${name})`; // throws where the variable has no value yet
        this.#post('Runtime.evaluate', { expression, objectGroup: GROUP });
      });
    return { names, read };
  }
}

// What V8 refuses, with its place in the script.
function syntaxError({ exception, lineNumber, columnNumber }, name) {
  const [first] = exception.description.split('\n');
  const err = new SyntaxError(first.replace(/^SyntaxError: /, ''));
  err.stack = `${first}\n    at ${name}:${lineNumber + 1}:${columnNumber + 1}`;
  return err;
}

// The place of a cell's value has no other name than 0:0, which its host knows.
function placed(err, { name }) {
  if (err instanceof Error && !String(err.stack).includes(name)) err.stack += `\n    at ${name}:0:0`;
  return err;
}

function unsettled() {
  return Object.assign(new Error('the code awaits a promise that nothing settles'), { name: 'UnsettledError', stack: '' });
}

module.exports = { context: (...args) => new Context(...args) };
delete require.cache[__filename];
