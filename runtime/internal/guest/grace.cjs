// Lets an evaluation report after its timeout. The host then sends two signals:
//
//  SIGURG wakes an event loop that waits ─────┐
//  SIGINT terminates running code ────────────┴> __interrupted -> its result -> exit
//
// The host kills the process if it does not exit in time.
'use strict';

const { Interrupts } = require('./interrupt.cjs');
const { apply } = require('./intrinsics.cjs');

const SIGURG = 23; // which other programs ignore by default

const { reallyExit } = process;
const INTERRUPTED = '__interrupted'; // function that the code sets on globalThis

// deliver receives the function's result.
function interruptible(internals, deliver, fail) {
  const { Signal } = internals.internalBinding('signal_wrap');
  let done = false;
  const report = () => {
    if (done) return;
    done = true;
    try {
      deliver(globalThis[INTERRUPTED]?.());
    } catch (err) {
      fail(err);
    } finally {
      apply(reallyExit, process, [0]);
    }
  };
  const interrupts = new Interrupts(internals, report);
  interrupts.coverTimers(internals);
  const wake = new Signal();
  wake.unref();
  wake.onsignal = report;
  wake.start(SIGURG);
}

module.exports = { interruptible };
