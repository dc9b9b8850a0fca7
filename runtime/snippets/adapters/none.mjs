// The adapter for plain programs: the facts are what the snippet exports.
export const read = (recorded, exported) => ({ facts: exported });
