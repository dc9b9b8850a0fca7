// Hides our flags from workers of a Node that starts for one run. A worker of code from
// a string loads this, by --require, but nothing by --import.
'use strict';

process.execArgv = [];
delete require.cache[__filename];
