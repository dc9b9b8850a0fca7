// What makes a fork of the zygote a run: the state that Node keeps copies of becomes
// the run's own, and Node is led to the program where it looks for its main module.
// The child's descriptors, environment and arguments are the work of
// jail/zygote/src/child.c.
'use strict';

const Module = require('node:module');
const v8 = require('node:v8');
const { begin, readProgram } = require('./program.cjs');

const entry = process.argv[1]; // what Node takes for its main module
const { HOME } = process.env;

// The streams exist, but opening one has made its pipe non-blocking. That is to
// happen to the run's pipe at the same moment as in plain Node, if ever.
function openOnUse(name) {
  const own = Object.getOwnPropertyDescriptor(process, name);
  Object.defineProperty(process, name, {
    ...own,
    get() {
      Object.defineProperty(process, name, own);
      process[name]._handle.setBlocking(false);
      return process[name];
    },
  });
}

function reseed() {
  v8.setFlagsFromString(`--random-seed=${1 + (process.hrtime()[1] ^ process.pid)}`);
  Math.random();
  v8.setFlagsFromString('--random-seed=0'); // for what has a generator of its own
}

function becomeRun(pid, args) {
  const program = readProgram();
  Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid });
  process.argv.splice(1, Infinity, ...args);
  process.chdir('.'); // forgets the zygote's
  openOnUse('stdout');
  openOnUse('stderr');
  reseed();
  if (process.env.NODE_PATH !== undefined || process.env.HOME !== HOME) Module._initPaths(); // folders of packages
  if (process.env.TZ !== undefined) process.env.TZ = process.env.TZ; // tells V8
  begin(program, entry);
}

module.exports = { becomeRun, entry };
delete require.cache[__filename];
