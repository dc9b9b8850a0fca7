const pino = require('pino');
const log = pino({ base: null, timestamp: false, transport: { target: 'pino/file', options: { destination: 'p.log' } } });
log.info('from a worker');
log.flush(() => setTimeout(() => console.log(require('node:fs').readFileSync('p.log', 'utf8')), 500));
