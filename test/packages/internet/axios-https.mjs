// gaol: --allow-net api.example.com
import { readFileSync } from 'node:fs';
import https from 'node:https';
import axios from 'axios';
const httpsAgent = new https.Agent({ ca: readFileSync(process.env.CA), keepAlive: true });
for (const scheme of ['http', 'https']) {
  const api = axios.create({ baseURL: `${scheme}://api.example.com`, httpsAgent });
  console.log((await api.get('/echo', { params: { q: 'a b' } })).data);
  console.log((await api.post('/echo', { name: 'value' })).data);
  console.log((await api.put('/echo', Buffer.alloc(300000, 'x'))).data);
  console.log((await api.get('/gzip')).data.length);
  console.log((await api.get('/redirect')).data);
  await api.get('/missing').catch((err) => console.log(err.message, err.response.status));
  await api.get('/wait', { timeout: 100 }).catch((err) => console.log(err.code));
  let size = 0;
  for await (const part of (await api.get('/stream', { responseType: 'stream' })).data) size += part.length;
  console.log(size);
}
await axios.get('https://api.example.com/').catch((err) => console.log(err.code));
httpsAgent.destroy();
