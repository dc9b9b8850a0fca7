// gaol: --allow-net api.example.com
import { readFileSync } from 'node:fs';
import { Agent, Client, fetch, request, stream } from 'undici';
import { PassThrough } from 'node:stream';
const ca = readFileSync(process.env.CA, 'utf8');
const dispatcher = new Agent({ connect: { ca } });
for (const origin of ['http://api.example.com', 'https://api.example.com']) {
  const { statusCode, body } = await request(origin + '/echo', { dispatcher, method: 'PUT', body: 'hello', headers: { 'x-a': '1' } });
  console.log(statusCode, await body.json());
  console.log((await (await fetch(origin + '/gzip', { dispatcher })).text()).length);
  let size = 0;
  await stream(origin + '/stream', { dispatcher, method: 'GET' }, () => new PassThrough().on('data', (part) => { size += part.length; }));
  console.log(size);
  const client = new Client(origin, { connect: { ca }, pipelining: 5 });
  const all = await Promise.all(Array.from({ length: 20 }, async (_, i) => (await client.request({ method: 'GET', path: `/echo?${i}` })).body.json()));
  console.log(all.map((echo) => echo.target).join(' '));
  await client.close();
}
const h2 = new Agent({ connect: { ca }, allowH2: true });
console.log(await (await request('https://api.example.com/echo', { dispatcher: h2 })).body.json().then((echo) => echo.proto));
await request('https://api.example.com/').catch((err) => console.log(err.code));
await Promise.all([dispatcher.close(), h2.close()]);
