// The module that a Node which starts for one run preloads with --require, in its main
// thread and in its workers. It also serves workers of a forked run.
//
// Node passes the flag on to children of node:test that gaol does not foresee. They have no
// program, and this module only hides the flag there.
'use strict';

const { fstatSync } = require('node:fs');

const PROGRAM_FD = 4; // as in program.cjs

// A program is a regular file without a name. Nothing else that Node opens is.
function hasProgram() {
  try {
    const stat = fstatSync(PROGRAM_FD);
    return stat.isFile() && stat.nlink === 0;
  } catch {
    return false;
  }
}

if (hasProgram()) require('./program.cjs').start();
else process.execArgv = process.execArgv.filter((arg) => !arg.startsWith(`--require=${__dirname}/`));
delete require.cache[__filename];
