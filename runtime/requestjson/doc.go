// Package requestjson defines the inputs of the operations of gaol serve in JSON: in bodies of the HTTP
// API, and in sessions. The server checks the bounds in tags. Package resultjson defines the results.
package requestjson
