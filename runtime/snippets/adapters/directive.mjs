// The adapter for @directive-run/core: it records the systems that createSystem makes.
//
// facts.$store exists in a system of one module. With several, the snapshot names facts a::n.
const { assign, hasOwn, keys } = Object;

export const wrap = {
  '@directive-run/core': {
    createSystem: (createSystem, record) => (...args) => record(createSystem(...args)),
  },
};

export async function settle(systems) {
  for (const system of systems) {
    try {
      await system.settle?.();
    } catch (err) {
      const names = pending([system]).filter((name) => !String(err?.message).includes(name));
      if (names.length > 0 && err instanceof Error) err.message += `; in flight: ${names.join(', ')}`;
      throw err;
    }
  }
}

// Names what systems wait for.
export const pending = (systems) => systems.flatMap(namesOf);

function namesOf(system) {
  try {
    return system.inspect().inflight.map(({ resolverId, id }) => String(resolverId ?? id));
  } catch {
    return []; // a version without it
  }
}

// Sets a::n of an object as n of its member a.
function nest(object, flat = {}) {
  for (const key of keys(flat)) {
    const [, module, name] = /^(.+?)::(.+)$/s.exec(key) ?? [];
    if (module === undefined) object[key] = flat[key];
    else (hasOwn(object, module) ? object[module] : (object[module] = {}))[name] = flat[key];
  }
}

// A derivation that throws does not hide the others.
function valuesOf(derive = {}) {
  const values = {};
  for (const name of keys(derive)) {
    try {
      values[name] = derive[name];
    } catch (err) {
      values[name] = `[error: ${err?.message}]`;
    }
  }
  return values;
}

export function read(systems) {
  const [facts, derived] = [{}, {}];
  for (const system of systems) {
    const store = system.facts?.$store;
    if (store) {
      assign(facts, store.toObject());
      assign(derived, valuesOf(system.derive));
    } else {
      nest(facts, system.getSnapshot().facts);
      nest(derived, system.inspect().derivations);
    }
  }
  return { facts, derived };
}

export function serialize(value, systems) {
  if (typeof value.$store?.toObject === 'function') return value.$store.toObject();
  return systems.some(({ derive }) => derive === value) ? valuesOf(value) : undefined;
}
