// Tries ways around a denied place: {top, parts, file, ways?}. The place is
// top/parts[0]/.../parts[n], a folder with a file f in it, or, with file, one file.
// Returns {way: code}, "" for a way that worked. Before each way the place is created if
// possible.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { Worker } from 'node:worker_threads';

const { top, parts, file, ways } = JSON.parse(process.argv[2]);
const place = [top, ...parts].join('/'), parent = [top, ...parts.slice(0, -1)].join('/'), first = top + '/' + parts[0];
const name = parts.at(-1), target = file ? place : place + '/f', below = target.slice(top.length + 1);
const aside = top + '/aside', mark = 'the secret';

function make(at = place) {
	if (!file) fs.mkdirSync(at, { recursive: true });
	else fs.mkdirSync(at.slice(0, at.lastIndexOf('/')), { recursive: true });
	fs.writeFileSync(file ? at : at + '/f', mark);
}

function anew() {
	for (const f of [() => fs.rmSync(first, { recursive: true }), () => fs.rmSync(aside, { recursive: true }), make]) try { f() } catch {}
	fs.mkdirSync(aside, { recursive: true });
	process.chdir(top);
}

const through = text => { if (!String(text).includes(mark)) throw Object.assign(new Error('empty'), { code: 'nothing' }) };
const read = path => through(fs.readFileSync(path));
const link = (to, rest = '') => { fs.symlinkSync(to, aside + '/l'); read(aside + '/l' + rest) };
const fromFd = (path, rest) => { const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY); try { read(`/proc/self/fd/${fd}/${rest}`) } finally { fs.closeSync(fd) } };
const inFolder = f => () => { if (file) throw { code: 'file' }; f() };
const soft = f => { try { f() } catch {} };
const away = path => { fs.renameSync(path, aside + '/gone'); fs.accessSync(aside + '/gone') };
const inChild = (command, ...args) => {
	try { through(execFileSync(command, args, { stdio: 'pipe' })) } catch (e) {
		throw e.stderr?.length ? { code: /denied/.test(e.stderr) ? 'EACCES' : String(e.stderr) } : e;
	}
};
const inWorker = code => new Promise((resolve, reject) => new Worker(
	`const { workerData: path, parentPort } = require('worker_threads'), fs = require('fs');
	try { ${code}; parentPort.postMessage('') } catch (e) { parentPort.postMessage(e.code) }`,
	{ eval: true, workerData: target }).on('message', code => code ? reject({ code }) : resolve()).on('error', reject));

const all = {
	read: () => read(target),
	'read by promise': async () => through(await fs.promises.readFile(target)),
	'read by stream': async () => { for await (const chunk of fs.createReadStream(target)) through(chunk) },
	'read in a worker': () => inWorker('fs.readFileSync(path)'),
	'read in a child': () => inChild('cat', target),
	'read in a grandchild': () => inChild('sh', '-c', `sh -c 'cat ${target}; true' && true`),
	list: inFolder(() => { if (!fs.readdirSync(place).includes('f')) throw { code: 'nothing' } }),
	'find in a child': inFolder(() => { if (!String(execFileSync('sh', ['-c', `find ${place} 2>/dev/null; true`])).includes('/f')) throw { code: 'EACCES' } }),
	'stat inside': inFolder(() => fs.statSync(target)),
	'go there': inFolder(() => { process.chdir(place); read('f') }),
	'start there': inFolder(() => execFileSync('pwd', { cwd: place })),
	watch: inFolder(() => fs.watch(place).close()),
	dots: () => read(`${aside}/../${below}`),
	'dots from the root': () => read(`/../..${top}/./${below}`),
	'/proc/self/root': () => read('/proc/self/root' + target),
	'/proc/thread-self/root': () => read('/proc/thread-self/root' + target),
	'/proc/self/cwd': () => read('/proc/self/cwd/' + below),
	'a descriptor of the top': () => fromFd(top, below),
	'a descriptor of the place': inFolder(() => fromFd(place, 'f')),
	'a relative path': () => { process.chdir(parent); read(file ? name : name + '/f') },
	'a link to it': () => link(target),
	'a link to the place': inFolder(() => link(place, '/f')),
	'a link to the top': () => link(top, '/' + below),
	'a relative link': () => link('../' + below),
	'a link through /proc': () => link('/proc/self/root' + target),
	'a hard link': () => { fs.linkSync(target, aside + '/l'); read(aside + '/l') },
	copy: async () => { // not with cpSync, which ends Node if it may not read
		await fs.promises.cp(place, aside + '/copy', { recursive: true });
		read(aside + '/copy' + (file ? '' : '/f'));
	},
	write: () => fs.writeFileSync(target, 'x'),
	append: () => fs.appendFileSync(target, 'x'),
	truncate: () => fs.truncateSync(target),
	'make in it': inFolder(() => fs.writeFileSync(place + '/new', '')),
	'make a folder in it': inFolder(() => fs.mkdirSync(place + '/new')),
	'link into it': inFolder(() => { fs.writeFileSync(aside + '/x', ''); fs.linkSync(aside + '/x', place + '/new') }),
	'move into it': inFolder(() => { fs.writeFileSync(aside + '/x', ''); fs.renameSync(aside + '/x', place + '/new') }),
	'link in it': inFolder(() => fs.symlinkSync('/', place + '/new')),
	remove: () => fs.rmSync(place, { recursive: true }),
	'remove it alone': () => { if (file) return fs.unlinkSync(place); soft(() => fs.rmSync(target)); fs.rmdirSync(place) },
	'remove its first parent': () => fs.rmSync(first, { recursive: true }),
	'move away': () => away(place),
	'move its parent away': () => away(parts.length > 1 ? parent : place),
	'move its first parent away': () => away(first),
	'move beside': () => fs.renameSync(place, place + '-'),
	'move a link over it': () => { fs.symlinkSync(aside, aside + '/l'); soft(() => file || fs.rmSync(place, { recursive: true })); fs.renameSync(aside + '/l', place) },
	'move over it': () => { make(aside + '/x'); soft(() => file || fs.rmSync(target)); fs.renameSync(aside + '/x', place) },
	'a link for it': () => { soft(() => fs.rmSync(place, { recursive: true })); fs.symlinkSync(aside, place) },
	'anew, after its first parent': () => { away(first); make(); read(target) },
	'anew, of the other kind': () => { soft(() => fs.rmSync(place, { recursive: true })); file ? fs.mkdirSync(place) : fs.writeFileSync(place, '') },
	chmod: () => fs.chmodSync(place, 0o777),
	'chmod in a child': () => { try { execFileSync('chmod', ['777', place], { stdio: 'pipe' }) } catch (e) { throw { code: /not permitted/.test(e.stderr) ? 'EPERM' : String(e.stderr) } } },
	utimes: () => fs.utimesSync(place, 1, 1),
};

const codes = {};
for (const way of ways ?? Object.keys(all)) {
	anew();
	try {
		await all[way]();
		codes[way] = '';
	} catch (e) {
		if (e.code !== 'file') codes[way] = e.code || (/busy/.test(e.message) ? 'EBUSY' : String(e)); // Node's rmSync has no code for it
	}
}
__return(codes);
