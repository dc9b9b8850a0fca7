const description = require("../package.json") as { version: string };

/** The version of this package. */
export const version: string = description.version;
