// The module that a zygote preloads with --require: it warms up Node and waits. Each child is
// a run: it continues with child.cjs, and then with its main module as usual. Workers of a
// run load it too.
'use strict';

const { setFlagsFromString } = require('node:v8');
const { isMainThread } = require('node:worker_threads');

const ENTRY = '/main'; // the main module that the host names; no such file exists

// Children inherit the compiled code that runs before the program. Node's own modules must
// not be loaded this way: V8 would lose inferred names of functions in stack traces.
function loadEagerly(path) {
  for (const name of ['node:fs', 'node:module', 'node:url']) require(name);
  setFlagsFromString('--no-lazy');
  const module = require(path);
  setFlagsFromString('--lazy');
  return module;
}

if (isMainThread && process.argv[1] === ENTRY) {
  const child = loadEagerly('./child.cjs');
  const { rehearse, takeInternals, warmUp } = require('./warm.cjs');
  const { readProgram, resetHeapFlags } = require('./program.cjs');
  resetHeapFlags();
  const binding = process._linkedBinding('gaol'); // from the preloaded shared object
  const { serve, receive } = binding;
  delete binding.serve; // a program can get the binding from process
  delete binding.receive;
  const { exitInfo, milestones } = takeInternals();
  warmUp(child);
  const [pid, parked] = serve(exitInfo, milestones);
  if (parked) rehearse(child); // the pages that it writes are copied before the program arrives
  child.becomeRun(pid, receive(), readProgram());
} else {
  require('./prelude.cjs');
}
delete require.cache[__filename];
