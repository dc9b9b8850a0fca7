// gaol: --allow-net api.example.com
import { readFileSync } from 'node:fs';
import got from 'got';
const certificateAuthority = readFileSync(process.env.CA, 'utf8');
for (const scheme of ['http', 'https']) {
  const api = got.extend({ prefixUrl: `${scheme}://api.example.com`, https: { certificateAuthority }, retry: { limit: 0 } });
  console.log(await api('echo', { searchParams: { q: 'a b' } }).json());
  console.log(await api.post('echo', { json: { name: 'value' } }).json());
  console.log((await api('gzip').text()).length);
  console.log(await api('redirect').text());
  await api('missing').catch((err) => console.log(err.code, err.response.statusCode));
  await api('wait', { timeout: { request: 100 } }).catch((err) => console.log(err.code));
  let size = 0;
  for await (const part of api.stream('stream')) size += part.length;
  console.log(size);
}
console.log(await got('https://api.example.com/echo', { http2: true, https: { certificateAuthority } }).json().then((echo) => echo.proto));
await got('https://api.example.com/', { retry: { limit: 0 } }).catch((err) => console.log(err.code));
