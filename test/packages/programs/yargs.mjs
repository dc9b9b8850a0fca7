import yargs from 'yargs';
const argv = yargs(['build', '--watch', '--port=80', 'x']).command('build', 'builds').option('port', { type: 'number' }).boolean('watch').parseSync();
console.log(argv._, argv.watch, argv.port, (await yargs([]).option('port', { describe: 'a port' }).getHelp()).includes('a port'));
