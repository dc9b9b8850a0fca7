// Sends messages through a WebSocket, and lets the server close it, and cut it off.
import fs from 'node:fs';
import tls from 'node:tls';

tls.setDefaultCACertificates([fs.readFileSync(process.env.CA, 'utf8')]);
const url = process.argv[2];

function open(protocols) {
  return new Promise((done, fail) => {
    const ws = new WebSocket(url, protocols);
    ws.binaryType = 'arraybuffer';
    ws.onopen = () => done(ws);
    ws.onerror = (event) => fail(event.error ?? new Error(event.message));
  });
}

function exchange(ws, message) {
  return new Promise((done) => {
    ws.onmessage = (event) => done(event.data);
    ws.onclose = (event) => done({ code: event.code, reason: event.reason, clean: event.wasClean });
    ws.onerror = () => {};
    ws.send(message);
  });
}

const ws = await open(['a', 'b']);
console.log('protocol', ws.protocol, 'extensions', ws.extensions);
console.log(await exchange(ws, 'hello'));
console.log(await exchange(ws, 'grüße 🌍'));
for (const size of [0, 125, 126, 65535, 65536, 3_000_000]) {
  const data = new Uint8Array(size).map((_, i) => i * 7);
  const got = new Uint8Array(await exchange(ws, data));
  console.log(size, got.length === size && got.every((b, i) => b === data[i]));
}
console.log(await exchange(ws, 'close'));
console.log(await exchange(await open(), 'cut'));

const last = await open();
const closed = new Promise((done) => { last.onclose = (event) => done({ code: event.code, clean: event.wasClean }); });
last.close(1000, 'done');
console.log(await closed);
