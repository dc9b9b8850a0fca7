// Calls functions of Node's fs, synchronously and as promises. Each name works in its own
// folders, see make.mjs. The argument is {dir, names}, and the result is
// {name: [code of sync, code of promise]}, "" for success.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';

const p = fs.promises;
const both = (name, ...args) => [dir => fs[name + 'Sync'](...args.map(a => at(dir, a))), dir => p[name](...args.map(a => at(dir, a)))];
const at = (dir, arg) => typeof arg === 'string' && arg.startsWith('./') ? dir + arg.slice(1) : arg;
const seconds = new Date(1e12);

const calls = {
	readFile: both('readFile', './file'),
	readLink: both('readFile', './link'), // reads its target
	writeNew: both('writeFile', './new', 'x'),
	writeOld: both('writeFile', './file', 'x'),
	appendFile: both('appendFile', './file', 'x'),
	stat: both('stat', './file'),
	lstat: both('lstat', './link'),
	access: both('access', './file'),
	readdir: both('readdir', './'),
	opendir: [dir => fs.opendirSync(dir).closeSync(), async dir => (await p.opendir(dir)).close()],
	mkdir: both('mkdir', './new'),
	mkdirs: both('mkdir', './new/er', { recursive: true }),
	mkdtemp: both('mkdtemp', './new'),
	unlink: both('unlink', './file'),
	rmdir: both('rmdir', './folder'),
	rm: both('rm', './full', { recursive: true }),
	rename: both('rename', './file', './new'),
	renameFolder: both('rename', './full', './new'),
	renameAway: both('rename', './file', './folder/new'),
	link: both('link', './file', './new'),
	linkAway: both('link', './file', './folder/new'),
	symlink: both('symlink', 'file', './new'),
	readlink: both('readlink', './link'),
	realpath: both('realpath', './link'),
	chmod: both('chmod', './file', 0o600),
	chown: both('chown', './file', process.getuid(), process.getgid()),
	utimes: both('utimes', './file', seconds, seconds),
	lutimes: both('lutimes', './link', seconds, seconds),
	truncate: both('truncate', './file', 1),
	copyFile: both('copyFile', './file', './new'),
	copyOver: both('copyFile', './file', './other'),
	execute: [
		dir => { const { error, status } = spawnSync(dir + '/../prog', { stdio: 'ignore' }); if (error ?? status) throw error ?? status },
		dir => new Promise((resolve, reject) => {
			try { spawn(dir + '/../prog', { stdio: 'ignore' }).on('error', reject).on('exit', resolve) } catch (e) { reject(e) }
		}),
	],
};

const codeOf = async (f, dir) => {
	try {
		await f(dir);
		return '';
	} catch (e) {
		return e.code ?? String(e);
	}
};

const { dir, names } = JSON.parse(process.argv[2]);
const codes = {};
for (const name of names) {
	const [sync, promise] = calls[name];
	codes[name] = [await codeOf(sync, `${dir}/${name}.sync`), await codeOf(promise, `${dir}/${name}.promise`)];
}
__return(codes);
