// A small store: state, values that are computed from it, and actions that may take time.

export class ActionError extends Error {
  name = 'ActionError';
}

// Creates a store from its first state, functions of the state, and functions that change it.
export function createStore({ state, derive = {}, actions = {} }) {
  const current = { ...state };
  const listeners = new Set();
  const inFlight = new Map();

  const run = async (name, argument) => {
    const action = actions[name];
    if (!action) throw new ActionError(`there is no action ${name}`);
    Object.assign(current, await action({ ...current }, argument));
    for (const listener of listeners) listener({ ...current });
  };

  return {
    get: (key) => (key in derive ? derive[key](current) : current[key]),
    snapshot: () => ({ ...current }),
    derived: () => Object.fromEntries(Object.keys(derive).map((key) => [key, derive[key](current)])),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    dispatch(name, argument) {
      const done = run(name, argument);
      inFlight.set(done, name);
      const remove = () => inFlight.delete(done);
      done.then(remove, remove);
      return done;
    },
    pending: () => [...inFlight.values()],
    settled: () => Promise.all(inFlight.keys()),
  };
}
