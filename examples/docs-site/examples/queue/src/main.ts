import { jobs } from './jobs.js';

for (const name of ['build', 'test']) jobs.dispatch('finish', name);
await jobs.settled();
console.log(jobs.get('left'), 'jobs left');
