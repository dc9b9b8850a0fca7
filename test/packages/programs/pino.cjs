const pino = require('pino');
const log = pino({ base: null, timestamp: false, redact: ['password'] }, pino.destination({ dest: 1, sync: true }));
log.child({ request: 7 }).info({ password: 'x' }, 'hello %s', 'you');
