// The adapter for tally: gaol snippet check --adapter tally.mjs.

// Records each store that an example makes.
export const wrap = {
  tally: {
    createStore: (createStore, record) => (...args) => record(createStore(...args)),
  },
};

// Waits for actions, so that the state is the one after them.
export const settle = (stores) => Promise.all(stores.map((store) => store.settled()));

// Names the actions that are in flight when the time is up.
export const pending = (stores) => stores.flatMap((store) => store.pending());

export const read = (stores) => ({
  facts: Object.assign({}, ...stores.map((store) => store.snapshot())),
  derived: Object.assign({}, ...stores.map((store) => store.derived())),
});
