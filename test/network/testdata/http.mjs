// Uses an HTTP server in unusual ways, and prints the responses.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import tls from 'node:tls';

tls.setDefaultCACertificates([fs.readFileSync(process.env.CA, 'utf8')]);
const base = process.argv[2];
const secure = base.startsWith('https:');
const client = secure ? https : http;
const agent = new client.Agent({ keepAlive: true, maxSockets: 1 });

function print(name, value) {
  console.log(name, JSON.stringify(value));
}

// request makes a request with node:http. It returns all that it got, headers sorted.
function request(path, { body, parts, ...options } = {}) {
  return new Promise((done) => {
    const got = { information: [] };
    const req = client.request(base + path, { agent, ...options }, (res) => {
      const { date, ...rest } = res.headers;
      const headers = Object.fromEntries(Object.entries(rest).sort());
      Object.assign(got, { status: res.statusCode, headers, hasDate: date !== undefined, text: '' });
      res.setEncoding('latin1');
      res.on('data', (part) => { got.text += part; });
      res.on('error', (err) => { got.error = err.code; });
      res.on('close', () => done({ ...got, trailers: res.trailers, complete: res.complete, reused: req.reusedSocket }));
    });
    req.on('information', (info) => got.information.push([info.statusCode, info.headers.link]));
    req.on('continue', () => { got.information.push('continue'); req.end(body); });
    req.on('error', (err) => done({ ...got, error: err.code }));
    if (options.headers?.expect) return req.flushHeaders();
    for (const part of parts ?? []) req.write(part);
    req.end(body);
  });
}

print('get', await request('/echo?a=1;b=%2F&c=%zz&&d'));
print('path', await request('//a/../b%2f?'));
print('post', await request('/echo', { method: 'POST', body: 'hello', headers: { 'x-a': ['1', '2'], cookie: 'a=1' } }));
print('chunked', await request('/echo', { method: 'PUT', parts: ['a'.repeat(100000), 'b', 'c'.repeat(200000)] }));
print('no body', await request('/echo', { method: 'POST' }));
print('delete with a body', await request('/echo', { method: 'DELETE', body: '{}', headers: { 'content-length': 2 } }));
print('options', await request('/echo', { method: 'OPTIONS' }));
print('expect', await request('/echo', { method: 'POST', body: 'later', headers: { expect: '100-continue', 'content-length': 5 } }));
print('expect, refused', await request('/echo?refuse', { method: 'POST', body: 'later', headers: { expect: '100-continue', 'content-length': 5 } }));
print('gzip', await request('/gzip').then(({ text, ...rest }) => ({ ...rest, length: text.length })));
print('trailers', await request('/trailers'));
print('early', await request('/early'));
print('headers', await request('/headers'));
for (const code of [200, 204, 205, 304, 404, 418, 503]) print(`status ${code}`, await request(`/status?code=${code}`));
print('head', await request('/headers', { method: 'HEAD' }));
print('cut', await request('/cut'));
print('cut, chunked', await request('/cut?chunked'));

// Requests one after the other use one connection.
const first = (await request('/connection')).text;
print('kept alive', (await request('/connection')).text === first);
agent.destroy();

// fetch, with a stream in each direction.
async function* parts() { for (let i = 0; i < 50; i++) yield new Uint8Array(10000).fill(i); }
print('fetch', await (await fetch(base + '/echo', { method: 'POST', body: parts(), duplex: 'half' })).json());
const form = new FormData();
form.set('file', new File(['x'.repeat(100000)], 'x.txt'));
print('form', await (await fetch(base + '/echo', { method: 'POST', body: form, headers: { 'content-type': 'multipart/form-data; boundary=x' } })).json().then((got) => got.method));
print('fetch gzip', (await (await fetch(base + '/gzip')).text()).length);
print('many', await Promise.all(Array.from({ length: 30 }, (_, i) => fetch(`${base}/echo?${i}`).then((res) => res.json()).then((got) => got.target))));

// The server sees that the client gives up, before and after it has responded.
for (const query of ['early', 'late&flush']) {
  const controller = new AbortController();
  const response = fetch(`${base}/wait?${query}`, { signal: controller.signal }).then((res) => res.text()).catch((err) => err.name);
  print('waiting', await (await fetch(base + '/waiting')).text());
  controller.abort();
  print('aborted', await response);
  print('canceled', await (await fetch(base + '/canceled')).text());
}

// A raw connection, of which the client's side ends first. Not with TLS: the server may reset
// a connection on which something arrives after the request.
function raw(request, upgraded) {
  const { hostname } = new URL(base);
  return new Promise((done) => {
    let got = '';
    const o = { host: hostname, port: secure ? 443 : 80, allowHalfOpen: true };
    const s = secure ? tls.connect({ ...o, servername: hostname }) : net.connect(o);
    s.on('data', (part) => { got += part; if (upgraded && got.endsWith('\r\n\r\n')) s.end(upgraded); });
    s.on('error', (err) => done(got + err.code)).on('end', () => { s.destroy(); done(got.replace(/Date: .*/g, 'Date').split('\r\n')); });
    s.on(secure ? 'secureConnect' : 'connect', () => upgraded || secure ? s.write(request) : s.end(request));
  });
}
const version = `HTTP/1.1\r\nHost: ${new URL(base).host}\r\n`;
print('upgrade', await raw(`GET /raw ${version}Connection: Upgrade\r\nUpgrade: raw\r\n\r\n`, 'hello').then((got) => [got[0], got.at(-1)]));
print('close', await raw(`GET /status?code=404 ${version}Connection: close\r\n\r\n`).then((got) => got[0]));
print('1.0', await raw('GET /status?code=404 HTTP/1.0\r\n\r\n').then((got) => got[0].split(' ')[1]));
