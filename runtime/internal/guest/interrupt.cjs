// Makes SIGINT terminate the code of cells and nothing else, as in Node's own REPL: Node has a
// thread that waits for the signal, and terminates a script that was run with breakOnSigint.
//
// Code after an await is run by Node's tick callback, after a callback of the event loop has
// returned. The tick callback is therefore run in such a script, too. The code of an event
// loop callback itself can't be terminated, except with coverTimers that of timers and
// immediates.
'use strict';

const { Script } = require('node:vm');

const { defineProperty } = Object;
const CALLBACK = '__cell'; // global function through which evaluated code calls this module
const HAS_TICK_SCHEDULED = 0; // index in tickInfo: the tick callback must run

// Made by the zygote: it takes half a millisecond.
const script = new Script(`${CALLBACK}()`, { filename: __filename });

class Interrupts {
  #step = () => {};
  #tickCallback = process._tickCallback; // Node's own
  #tickInfo;
  #clearAsyncIdStack; // removes the entries of a terminated script
  #onInterrupt;

  constructor(internalBinding, onInterrupt) {
    const { setTickCallback, tickInfo } = internalBinding('task_queue');
    this.#tickInfo = tickInfo;
    this.#clearAsyncIdStack = internalBinding('async_wrap').clearAsyncIdStack;
    this.#onInterrupt = onInterrupt;
    defineProperty(globalThis, CALLBACK, { value: (value) => this.#step(value) });
    internalBinding('contextify').startSigintWatchdog(); // starts the thread
    setTickCallback(() => this.#runTickCallback());
    this.#arm();
  }

  // Makes the callbacks of timers and immediates terminable: replaces Node's functions that run
  // them by ones that do so in the script.
  coverTimers({ internalBinding, internalRequire }) {
    const { processImmediate, processTimers } = internalRequire('internal/timers').getTimerCallbacks(this.#tickCallback);
    const inScript = (f) => (now) => this.run(() => f(now));
    internalBinding('timers').setupTimers(inScript(processImmediate), inScript(processTimers));
  }

  // Calls a function that SIGINT can terminate.
  run(f) {
    let result;
    this.#step = () => {
      this.#step = () => {};
      result = f();
    };
    try {
      script.runInThisContext({ breakOnSigint: true, displayErrors: false });
    } catch (err) {
      if (!isInterrupt(err)) throw err;
      this.#clearAsyncIdStack();
      this.#onInterrupt(err);
      throw err;
    }
    return result;
  }

  // Runs the code that is queued as ticks and microtasks.
  finish() {
    this.#tickCallback();
    this.#arm();
  }

  // Returns the argument with which a script calls CALLBACK.
  receive(evaluate) {
    let received;
    this.#step = (value) => (received = value);
    evaluate(CALLBACK);
    this.#step = () => {};
    return received;
  }

  #runTickCallback() {
    try {
      this.run(this.#tickCallback);
    } catch (err) {
      if (!isInterrupt(err)) throw err;
    } finally {
      this.#arm();
    }
  }

  // Makes Node call the tick callback. If no tick is scheduled, Node only runs microtasks,
  // outside of the script.
  #arm() {
    this.#tickInfo[HAS_TICK_SCHEDULED] = 1;
  }
}

const isInterrupt = (err) => err?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';

module.exports = { Interrupts };
delete require.cache[__filename];
