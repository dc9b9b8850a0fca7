// The module that a Node process preloads with --require if it starts for one run, in its
// main thread and in its workers. Workers of a forked run load it too.
//
// Node also passes the flag to children of node:test in cases that gaol does not detect. They
// have no program, and this module only hides the flag there.
'use strict';

const { fstatSync, readlinkSync } = require('node:fs');
const Module = require('node:module');

const PROGRAM_FD = 4; // as in program.cjs

// Only a program is a regular file without a link. For gVisor, files in memory have one.
function hasProgram() {
  try {
    const stat = fstatSync(PROGRAM_FD);
    return stat.isFile() && (stat.nlink === 0 || readlinkSync(`/proc/self/fd/${PROGRAM_FD}`).startsWith('/memfd:'));
  } catch {
    return false;
  }
}

const isRun = hasProgram();

function load(name, run) {
  if (!isRun) return;
  const module = new Module(`${__dirname}/${name}`);
  Module._cache[module.id] = module;
  run(module, loaded);
  module.loaded = true;
}

const loaded = (id) => Module._cache[`${__dirname}/${id.slice(2)}`]?.exports ?? require(id);
loaded.cache = require.cache;

// guest.go inserts the modules of a start here, as one file loads in half the time of seven.
if (isRun) loaded('./program.cjs').start();
else process.execArgv = process.execArgv.filter((arg) => !arg.startsWith(`--require=${__dirname}/`));
delete require.cache[__filename];
