// Reads the first line only.
const [line] = require('fs').readFileSync(0, 'utf8').split('\n');
console.log(line.split(' ').map(Number).reduce((a, b) => a + b, 0));
