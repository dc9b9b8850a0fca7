export { ConnectionError, GaolError, type ErrorDetails, type InvalidField } from "./errors.js";
