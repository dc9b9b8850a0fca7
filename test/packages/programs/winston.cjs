const winston = require('winston');
const log = winston.createLogger({ format: winston.format.json(), transports: [new winston.transports.Console(), new winston.transports.File({ filename: 'w.log' })] });
log.info('started', { port: 1 });
log.warn('careful');
log.on('finish', () => setTimeout(() => console.log(require('node:fs').readFileSync('w.log', 'utf8').trim().split('\n').length), 300));
log.end();
