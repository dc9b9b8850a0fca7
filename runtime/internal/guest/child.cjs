// Turns a fork of the zygote into a run: it replaces the state that Node has cached, and
// redirects the main module to the program. jail/zygote/src/child.c sets up the child's
// descriptors, environment and arguments.
'use strict';

const Module = require('node:module');
const { begin } = require('./program.cjs');

const entry = process.argv[1]; // the main module, for Node
const { HOME } = process.env;

// Starts the program. Rehearsals of the zygote call it, too, with the zygote's own pid and main module.
function becomeRun(pid, args, program) {
  Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid });
  process.argv.splice(1, Infinity, ...args);
  process.chdir('.'); // drops the cached directory of the zygote
  if (process.env.NODE_PATH !== undefined || process.env.HOME !== HOME) Module._initPaths(); // module search paths
  if (process.env.TZ !== undefined) process.env.TZ = process.env.TZ; // notifies V8
  begin(program, entry);
}

module.exports = { becomeRun, entry };
