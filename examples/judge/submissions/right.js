const text = require('fs').readFileSync(0, 'utf8');
console.log(text.split(/\s+/).filter(Boolean).map(Number).reduce((a, b) => a + b, 0));
