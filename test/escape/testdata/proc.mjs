// Lists folders and returns an entry for each path: its kind, what can be read and what
// can be written. Arguments: {roots, processes}.
import fs from 'node:fs';

const { O_WRONLY, O_NONBLOCK, O_CREAT } = fs.constants;
const { roots, processes } = JSON.parse(process.argv[2]);
const kernels = fs.statSync('/proc/self').dev; // the device of paths without a mount over them
const code = (f) => { try { f(); return '' } catch (e) { return e.code } };

function read(path) {
	const text = Buffer.alloc(64 << 10);
	const fd = fs.openSync(path, fs.constants.O_RDONLY | O_NONBLOCK);
	try { return text.latin1Slice(0, fs.readSync(fd, text)) } finally { fs.closeSync(fd) }
}

// Ways to write. Each returns the errno with which it fails, or ''.
const write = (path, kind) => kind === 'folder'
	? [code(() => fs.closeSync(fs.openSync(path + '/new', O_WRONLY | O_CREAT))), code(() => fs.mkdirSync(path + '/folder')), code(() => fs.chmodSync(path, 0o777))]
	: [code(() => fs.closeSync(fs.openSync(path, O_WRONLY | O_NONBLOCK))), code(() => fs.truncateSync(path)), code(() => fs.chmodSync(path, 0o777))];

function walk(path, found, skip = () => false) {
	let info;
	try { info = fs.lstatSync(path) } catch (e) { return found.push({ path, kind: 'none', error: e.code }) }
	const entry = { path, isKernels: info.dev === kernels, kind: info.isSymbolicLink() ? 'link' : info.isDirectory() ? 'folder' : 'file' };
	found.push(entry);
	if (entry.kind === 'link') return;
	entry.written = write(path, entry.kind);
	if (entry.kind === 'file') return void (entry.error = code(() => { entry.text = read(path) }));
	entry.error = code(() => { for (const name of fs.readdirSync(path)) if (!skip(path, name)) walk(path + '/' + name, found, skip) });
}

const found = [], isProcess = (dir, name) => dir === '/proc' && /^\d+$/.test(name);
for (const root of roots) walk(root, found, isProcess);
// For other processes the names are enough. For this one, also try to write.
const names = {}, own = [];
for (const pid of processes ?? []) {
	const dirs = ['/proc/' + pid];
	try { for (const tid of fs.readdirSync(`/proc/${pid}/task`)) dirs.push(`/proc/${pid}/task/${tid}`) } catch { }
	for (const dir of dirs) names[dir] = fs.readdirSync(dir);
}
// Skip its open files, which lead elsewhere, and threads, which have the same entries.
const others = (dir, name) => dir === '/proc/self/task' && name !== String(process.pid);
for (const name of fs.readdirSync('/proc/self')) if (!['fd', 'map_files'].includes(name)) walk('/proc/self/' + name, own, (dir, name) => others(dir, name) || ['fd', 'map_files'].includes(name));
__return({ found, names, own });
