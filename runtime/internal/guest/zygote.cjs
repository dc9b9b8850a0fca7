// The module that a zygote preloads with --require: it warms Node up and waits. Each
// child, which is a run, continues with child.cjs, and then with its main module as always.
// Workers of a run load it too.
'use strict';

const { setFlagsFromString } = require('node:v8');
const { isMainThread } = require('node:worker_threads');

const ENTRY = '/main'; // the main module that the host names, which is no file

// A child finds compiled what is in front of the program. Node's own modules are not to
// be loaded so: V8 would forget names that it gives to functions in stack traces.
function loadEagerly(path) {
  for (const name of ['node:fs', 'node:module', 'node:url']) require(name);
  setFlagsFromString('--no-lazy');
  const module = require(path);
  setFlagsFromString('--lazy');
  return module;
}

if (isMainThread && process.argv[1] === ENTRY) {
  const { becomeRun } = loadEagerly('./child.cjs');
  const { rehearse, takeInternals, warmUp } = require('./warm.cjs');
  require('./program.cjs').resetHeapFlags();
  const binding = process._linkedBinding('gaol'); // of the object that is preloaded
  const { serve, receive } = binding;
  delete binding.serve; // the process keeps the binding, which a program could ask for
  delete binding.receive;
  const { exitInfo, milestones } = takeInternals();
  warmUp();
  const [pid, parked] = serve(exitInfo, milestones);
  if (parked) rehearse(); // what it writes to then is its own already
  becomeRun(pid, receive());
} else {
  require('./prelude.cjs');
}
delete require.cache[__filename];
