// Has SIGINT end what cells do and nothing else, as Node's own REPL has it: Node can end a
// script that was called so, by a thread that waits for the signal.
//
// What goes on after an await is called by Node, when a callback of the event loop has
// returned: the function that does so is called in such a script, too. What a callback
// does itself, as that of a timer, can't be ended.
'use strict';

const { Script } = require('node:vm');

const { defineProperty } = Object;
const SELF = '__cell'; // what code that V8 evaluates for us calls us by
const TICK = 0; // of tickInfo: there is something to be done when the callback has returned

class Interrupts {
  #script = new Script(`${SELF}()`, { filename: __filename });
  #step = () => {};
  #afterCallback = process._tickCallback; // does what is to be done then
  #tickInfo;
  #forgetCallers; // what a script that was ended amid callbacks leaves behind
  #onInterrupt;

  constructor(internalBinding, onInterrupt) {
    const { setTickCallback, tickInfo } = internalBinding('task_queue');
    this.#tickInfo = tickInfo;
    this.#forgetCallers = internalBinding('async_wrap').clearAsyncIdStack;
    this.#onInterrupt = onInterrupt;
    defineProperty(globalThis, SELF, { value: (value) => this.#step(value) });
    internalBinding('contextify').startSigintWatchdog(); // the thread is there from now on
    setTickCallback(() => this.#afterCallbackOf());
    this.#arm();
  }

  // Calls a function that SIGINT can end, whatever it is at.
  run(f) {
    let result;
    this.#step = () => {
      this.#step = () => {};
      result = f();
    };
    try {
      this.#script.runInThisContext({ breakOnSigint: true, displayErrors: false });
    } catch (err) {
      if (!isInterrupt(err)) throw err;
      this.#forgetCallers();
      this.#onInterrupt(err);
      throw err;
    }
    return result;
  }

  // Goes on with what was left for later, as far as it needs no event loop.
  finish() {
    this.#afterCallback();
    this.#arm();
  }

  // What a script calls SELF with.
  receive(evaluate) {
    let received;
    this.#step = (value) => (received = value);
    evaluate(SELF);
    this.#step = () => {};
    return received;
  }

  #afterCallbackOf() {
    try {
      this.run(this.#afterCallback);
    } catch (err) {
      if (!isInterrupt(err)) throw err;
    } finally {
      this.#arm();
    }
  }

  // Has Node call that function: where it knows of nothing else to do, it goes on with
  // promises by itself.
  #arm() {
    this.#tickInfo[TICK] = 1;
  }
}

const isInterrupt = (err) => err?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';

module.exports = { Interrupts };
delete require.cache[__filename];
