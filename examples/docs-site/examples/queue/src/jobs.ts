import { createStore } from 'tally';

interface State {
  waiting: string[];
}

export const jobs = createStore({
  state: { waiting: ['build', 'test', 'publish'] },
  derive: { left: ({ waiting }: State) => waiting.length },
  actions: { finish: ({ waiting }: State, job: string) => ({ waiting: waiting.filter((name) => name !== job) }) },
});
