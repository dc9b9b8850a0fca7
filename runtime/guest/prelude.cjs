// What a Node that starts for one run loads first, by --import or --require.
'use strict';

const { begin, readProgram } = require('./program.cjs');

begin(readProgram());
delete require.cache[__filename];
