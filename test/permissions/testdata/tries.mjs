// Tries actions in order. Standard input is {tries: [{kind, path, to}], other}, where other
// is the pid of another run's process. Returns the code of each, "" for success, and
// "placeholder" if the path is only a mount that hides a place.
import { spawnSync } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';

const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = fs.constants;
const open = (path, flags, use = () => {}) => {
	const fd = fs.openSync(path, flags, 0o644);
	try { use(fd) } finally { fs.closeSync(fd) }
};
const read = fd => fs.readSync(fd, Buffer.alloc(1));
const write = fd => fs.writeSync(fd, 'x');
const listening = async port => {
	const server = net.createServer().listen(port, '127.0.0.1');
	await once(server, 'listening');
	server.close();
	await once(server, 'close');
};
const connecting = async port => {
	const socket = net.connect(port, '127.0.0.1');
	try { await once(socket, 'connect') } catch (e) { if (e.code !== 'ECONNREFUSED') throw e } finally { socket.destroy() }
};
const sending = async port => {
	const socket = dgram.createSocket('udp4');
	try {
		socket.bind(port, '127.0.0.1');
		await once(socket, 'listening');
		await new Promise((ok, no) => socket.send('x', port, '127.0.0.1', e => e ? no(e) : ok()));
	} finally {
		socket.close();
	}
};

const { tries, other } = JSON.parse(fs.readFileSync(0));
const kinds = {
	read: path => open(path, O_RDONLY, read),
	readWrite: path => open(path, O_RDWR, write),
	write: path => open(path, O_WRONLY, write),
	append: path => open(path, O_WRONLY | O_APPEND, write),
	create: path => open(path, O_WRONLY | O_CREAT | O_EXCL),
	truncate: path => open(path, O_RDONLY | O_TRUNC),
	mkdir: path => fs.mkdirSync(path),
	symlink: path => fs.symlinkSync('f', path),
	unlink: path => fs.unlinkSync(path),
	rmdir: path => fs.rmdirSync(path),
	rename: (path, to) => fs.renameSync(path, to),
	link: (path, to) => fs.linkSync(path, to),
	chmod: path => fs.chmodSync(path, 0o755),
	utimes: path => fs.utimesSync(path, 1, 1),
	list: path => { fs.readdirSync(path) },
	watch: path => fs.watch(path).close(),
	stat: path => (fs.lstatSync(path).mode & 0o044) === 0 ? 'placeholder' : '',
	readlink: path => { fs.readlinkSync(path) },
	execute: path => { const { error } = spawnSync(path, { stdio: 'ignore' }); if (error) throw error },
	listen: listening,
	connect: connecting,
	udp: sending,
	signal: () => { process.kill(other, 0) },
	inspect: () => { fs.readFileSync(`/proc/${other}/stat`) },
	env: name => { if (!(name in process.env)) throw { code: 'ENOENT' } },
};

const codes = [];
for (const { kind, path, to } of tries) {
	try {
		codes.push(await kinds[kind](path, to) ?? '');
	} catch (e) {
		codes.push(e.code ?? String(e));
	}
}
__return(codes);
