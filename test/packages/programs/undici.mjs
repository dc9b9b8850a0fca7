import { MockAgent, request, setGlobalDispatcher } from 'undici';
const agent = new MockAgent();
agent.disableNetConnect();
agent.get('http://example.com').intercept({ path: '/x' }).reply(200, { ok: true });
setGlobalDispatcher(agent);
const { statusCode, body } = await request('http://example.com/x');
console.log(statusCode, await body.json());
