// Makes SIGINT terminate the code of cells and nothing else, as in Node's own REPL: Node has a
// thread that waits for the signal, and terminates a script that was run with breakOnSigint.
//
// Code after an await is run by Node's tick callback, after a callback of the event loop has
// returned. The tick callback is therefore run in such a script, too. The code of an event
// loop callback itself can't be terminated, except with coverTimers that of timers and
// immediates.
'use strict';

const { isNativeError } = require('node:util').types;
const { Script } = require('node:vm');
const { hideFrames } = require('./frames.cjs');
const { Object, SafeSet, apply, method } = require('./intrinsics.cjs');

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
const SIGINT = 2;
const CALLBACK = '__cell'; // global function through which evaluated code calls this module
const HAS_TICK_SCHEDULED = 0; // index in tickInfo: the tick callback must run

// Made by the zygote: it takes half a millisecond.
const script = new Script(`${CALLBACK}()`, { filename: __filename });

// The method that Script's runInThisContext calls. That one removes the listeners of SIGINT meanwhile.
const runScript = method(getPrototypeOf(Script.prototype).runInContext);

// Keeps SIGINT for the interruption of code. Listeners of the guest would make Node handle the
// signal: they are only called for a signal that the process sends to itself.
function reserveSignal(internalBinding) {
  const binding = internalBinding('signal_wrap');
  const { Signal } = binding;
  const { start, close } = Signal.prototype;
  const { pid, _kill: kill } = process;
  const listeners = new SafeSet();
  const defer = setImmediate;
  binding.Signal = class extends Signal {
    start(number) {
      if (number !== SIGINT) return apply(start, this, [number]);
      listeners.add(this);
      return 0;
    }

    close() {
      listeners.delete(this);
      apply(close, this, []);
    }
  };
  process._kill = (to, number) => {
    if (to !== pid || number !== SIGINT || listeners.size === 0) return kill(to, number);
    defer(() => listeners.forEach((listener) => listener.onsignal(SIGINT)));
    return 0;
  };
}

class Interrupts {
  #step = () => {};
  #tickCallback = process._tickCallback; // Node's own
  #tickInfo;
  #clearAsyncIdStack; // removes the entries of a terminated script
  #onInterrupt;
  #triggerUncaughtException;

  constructor(internals, onInterrupt) {
    const { internalBinding } = internals;
    hideFrames(internals);
    const { setTickCallback, tickInfo } = internalBinding('task_queue');
    this.#tickInfo = tickInfo;
    this.#clearAsyncIdStack = internalBinding('async_wrap').clearAsyncIdStack;
    this.#onInterrupt = onInterrupt;
    this.#triggerUncaughtException = internalBinding('errors').triggerUncaughtException;
    reserveSignal(internalBinding);
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
      runScript(script, null, -1, false, true, false); // no timeout, no arrow message; breakOnSigint
    } catch (err) {
      if (!isInterrupt(err)) throw err;
      this.#clearAsyncIdStack();
      this.#onInterrupt(err);
      throw err;
    }
    return result;
  }

  // Runs the code that is queued as ticks and microtasks. Its errors are uncaught ones: Node also
  // cleans up after them.
  finish() {
    try {
      this.#tickCallback();
    } catch (err) {
      if (isInterrupt(err)) throw err;
      this.#triggerUncaughtException(err, false);
    }
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

const isInterrupt = (err) => isNativeError(err) && getOwnPropertyDescriptor(err, 'code')?.value === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';

module.exports = { Interrupts };
