// Turns a fork of the zygote into a run: it replaces the state that Node has cached, and
// redirects the main module to the program. jail/zygote/src/child.c sets up the child's
// descriptors, environment and arguments.
'use strict';

const Module = require('node:module');
const { begin } = require('./program.cjs');

const { defineProperty } = Object;

const entry = process.argv[1]; // the main module, for Node
const { HOME } = process.env;

// The zygote has opened the streams, which made its pipes non-blocking. A run's pipe must
// become so on first use, as in plain Node.
function openLazily(name) {
  const own = Object.getOwnPropertyDescriptor(process, name);
  Object.defineProperty(process, name, {
    ...own,
    get() {
      defineProperty(process, name, own);
      process[name]._handle.setBlocking(false);
      return process[name];
    },
  });
}

// Starts the program. Rehearsals of the zygote call it, too, with the zygote's own pid and main module.
function becomeRun(pid, args, program) {
  Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid });
  process.argv.splice(1, Infinity, ...args);
  process.chdir('.'); // drops the cached directory of the zygote
  openLazily('stdout');
  openLazily('stderr');
  if (process.env.NODE_PATH !== undefined || process.env.HOME !== HOME) Module._initPaths(); // module search paths
  if (process.env.TZ !== undefined) process.env.TZ = process.env.TZ; // notifies V8
  begin(program, entry);
}

module.exports = { becomeRun, entry };
delete require.cache[__filename];
