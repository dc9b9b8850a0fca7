import { Command } from 'commander';
const program = new Command('tool').option('-n, --number <n>', 'a number', Number, 1).argument('<file>').exitOverride();
program.action((file, { number }) => console.log(file, number)).parse(['-n', '5', 'a.txt'], { from: 'user' });
console.log(program.helpInformation());
