// Calls a function of the host, one call after the other and then all at once. In a jail the
// function is a global variable; else it is called by HTTP, at the address in the last
// argument.
import { Agent, request } from 'node:http';

const rounds = Number(process.argv[2]);
const url = process.argv[3];
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

function ask(...args) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const r = request(url, { agent, method: 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (part) => (text += part)).on('end', () => resolve(JSON.parse(text)));
    });
    r.on('error', reject).end(JSON.stringify(args));
  });
}

function check(sum, i) {
  if (sum !== i + 1) throw new Error(`${i} + 1 is not ${sum}`);
}

const times = [];
for (let i = 0; i < rounds; i++) {
  const began = performance.now();
  const sum = url ? await ask(i, 1) : add(i, 1);
  times.push(performance.now() - began);
  check(sum, i);
}
times.sort((a, b) => a - b);

const began = performance.now();
const sums = await Promise.all(Array.from({ length: rounds }, (_, i) => (url ? ask(i, 1) : add.async(i, 1))));
const took = performance.now() - began;
sums.forEach(check);
agent.destroy();
console.log(JSON.stringify({ median: times[rounds >> 1] * 1000, rate: (rounds / took) * 1000 }));
