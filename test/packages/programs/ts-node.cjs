const { writeFileSync } = require('node:fs');
require('ts-node').register({ transpileOnly: true, skipProject: true, compilerOptions: { module: 'commonjs', target: 'es2022' } });
writeFileSync('/tmp/answer.ts', 'enum Level { Low = 1, High = 40 }\nexport const answer: number = Level.High + 2;\n');
console.log(require('/tmp/answer.ts').answer);
