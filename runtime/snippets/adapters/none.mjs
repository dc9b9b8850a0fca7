// The adapter for plain programs: the facts are the snippet's exports.
export const read = (recorded, exported) => ({ facts: exported });
