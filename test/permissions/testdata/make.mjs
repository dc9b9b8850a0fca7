// Creates the folders for calls.c and calls.mjs again: {dir, names}. Standard input, if
// not empty, becomes the program.
import fs from 'node:fs';

const { dir, names } = JSON.parse(process.argv[2]);
fs.mkdirSync(dir, { recursive: true });
for (const name of names) {
	const at = `${dir}/${name}`;
	fs.rmSync(at, { recursive: true, force: true });
	fs.mkdirSync(at + '/full/inner', { recursive: true });
	fs.mkdirSync(at + '/folder');
	fs.writeFileSync(at + '/file', 'data');
	fs.writeFileSync(at + '/other', 'other');
	fs.symlinkSync('file', at + '/link');
}
const program = fs.readFileSync(0);
if (program.length > 0) fs.writeFileSync(dir + '/prog', program, { mode: 0o755 });
