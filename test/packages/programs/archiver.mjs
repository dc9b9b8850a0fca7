import { ZipArchive } from 'archiver';
import JSZip from 'jszip';
const archive = new ZipArchive({ zlib: { level: 9 } });
const parts = [];
archive.on('data', (part) => parts.push(part));
archive.append('hello', { name: 'a/hello.txt' });
await archive.finalize();
const zip = await JSZip.loadAsync(Buffer.concat(parts));
console.log(Object.keys(zip.files), await zip.file('a/hello.txt').async('string'));
