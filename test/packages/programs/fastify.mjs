import Fastify from 'fastify';
const app = Fastify();
app.post('/add', { schema: { body: { type: 'object', required: ['a', 'b'], properties: { a: { type: 'number' }, b: { type: 'number' } } } } },
  async ({ body }) => ({ sum: body.a + body.b }));
const good = await app.inject({ method: 'POST', url: '/add', payload: { a: 1, b: 2 } });
const bad = await app.inject({ method: 'POST', url: '/add', payload: { a: 1 } });
console.log(good.statusCode, good.body, bad.statusCode, bad.json().message);
await app.close();
