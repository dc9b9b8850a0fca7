// gaol: --allow-net tcp://localhost:*
import axios from 'axios';
import { createServer } from 'node:http';
const server = createServer((req, res) => {
  if (req.url === '/bad') res.statusCode = 418;
  res.setHeader('content-type', 'application/json').end(JSON.stringify({ url: req.url, agent: req.headers['x-agent'] }));
}).listen(0, '127.0.0.1', async () => {
  const api = axios.create({ baseURL: `http://127.0.0.1:${server.address().port}`, headers: { 'x-agent': 'test' } });
  console.log((await api.get('/a', { params: { q: 1 } })).data);
  await api.get('/bad').catch((err) => console.log(err.message, err.response.status));
  server.close();
});
