// Writes below the working directory, which is the argument, and elsewhere. Returns
// {inside, outside}, each {action: code}, "" for success.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

const cwd = process.argv[2], inside = {}, outside = {};
const attempt = (codes, name, f) => {
	try {
		f();
		codes[name] = '';
	} catch (e) {
		codes[name] = e.code ?? String(e.status);
	}
};

attempt(inside, 'files', () => {
	fs.writeFileSync(cwd + '/f', 'x');
	fs.appendFileSync('f', 'y');
	fs.truncateSync('f');
	fs.chmodSync('f', 0o700);
	fs.utimesSync('f', 1, 1);
});
attempt(inside, 'folders', () => {
	fs.mkdirSync('a/b', { recursive: true });
	fs.renameSync('f', 'a/b/f');
	fs.linkSync('a/b/f', 'a/g');
	fs.symlinkSync('a', 'l');
	fs.rmSync('a/b', { recursive: true });
});
attempt(inside, 'a program', () => {
	fs.writeFileSync('s', '#!/bin/sh\ntrue\n', { mode: 0o755 });
	execFileSync('./s');
});
attempt(inside, 'reading elsewhere', () => fs.readFileSync('/etc/passwd'));
attempt(inside, 'the null device', () => fs.writeFileSync('/dev/null', 'x'));

for (const dir of ['/workspace', '/home/node', '/tmp', '/var/tmp', '/dev/shm', '/opt', '/']) {
	if (dir === cwd) continue;
	attempt(outside, 'write in ' + dir, () => fs.writeFileSync(dir + '/f', ''));
	attempt(outside, 'make in ' + dir, () => fs.mkdirSync(dir + '/d'));
	attempt(outside, 'link in ' + dir, () => fs.symlinkSync('/', dir + '/l'));
	attempt(outside, 'shell in ' + dir, () => execFileSync('sh', ['-c', `echo x >${dir}/g`], { stdio: 'ignore' }));
	attempt(outside, 'through a link to ' + dir, () => {
		fs.rmSync('out', { force: true });
		fs.symlinkSync(dir, 'out');
		fs.writeFileSync('out/h', '');
	});
	attempt(outside, 'hard link in ' + dir, () => {
		fs.writeFileSync('m', '');
		try {
			fs.linkSync('m', dir + '/n');
		} catch (e) {
			if (e.code !== 'EXDEV') throw e; // /dev/shm is another file system
			fs.writeFileSync(dir + '/n', '');
		}
	});
	attempt(outside, 'move to ' + dir, () => {
		fs.writeFileSync('m', '');
		try {
			fs.renameSync('m', dir + '/m');
		} catch (e) {
			if (e.code !== 'EXDEV') throw e;
			fs.copyFileSync('m', dir + '/m');
		}
	});
}
for (const dir of ['/home/node', '/workspace']) if (dir !== cwd) attempt(outside, 'chmod ' + dir, () => fs.chmodSync(dir, 0o777));
__return({ inside, outside });
