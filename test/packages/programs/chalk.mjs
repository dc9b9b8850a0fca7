import chalk, { Chalk } from 'chalk';
console.log(chalk.level, JSON.stringify(new Chalk({ level: 3 }).bold.hex('#ff8800')('hi')), chalk.red('plain'));
