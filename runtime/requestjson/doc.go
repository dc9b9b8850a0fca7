// Package requestjson has the inputs of the operations of gaol serve, as JSON has them: in bodies of the HTTP
// API, and in sessions. Tags say what the server checks. Package resultjson has the results.
package requestjson
