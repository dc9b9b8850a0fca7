const text = require('fs').readFileSync(0, 'utf8');
console.log(text.match(/-?\d+/g).map(Number).reduce((a, b) => a + b));
