import os from 'node:os';

console.log(`guest hostname: ${os.hostname()}`);
