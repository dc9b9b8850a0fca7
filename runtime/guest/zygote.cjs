// What a zygote loads, by --require: it warms Node up and waits. Each child, which is
// a run, goes on from here to child.cjs, and then to its main module as always.
// Workers of a run load it too.
'use strict';

const { setFlagsFromString } = require('node:v8');
const { isMainThread } = require('node:worker_threads');

const ADDON = '/usr/libexec/gaol/zygote.so';

// A child finds compiled what is in front of the program. Node's own modules are not to
// be loaded so: V8 would forget names that it gives to functions in stack traces.
function loadEagerly(path) {
  for (const name of ['node:fs', 'node:module', 'node:url']) require(name);
  setFlagsFromString('--no-lazy');
  const module = require(path);
  setFlagsFromString('--lazy');
  return module;
}

if (isMainThread) {
  const { becomeRun } = loadEagerly('./child.cjs');
  const { rehearse, takeInternals, warmUp } = require('./warm.cjs');
  const addon = { exports: {} };
  process.dlopen(addon, ADDON);
  const { exitInfo, milestones } = takeInternals();
  warmUp();
  const [pid, parked] = addon.exports.serve(exitInfo, milestones);
  if (parked) rehearse(); // what it writes to then is its own already
  becomeRun(pid, addon.exports.receive());
} else {
  require('./child.cjs').becomeWorker();
}
delete require.cache[__filename];
