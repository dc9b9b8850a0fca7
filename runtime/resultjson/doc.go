// Package resultjson defines the JSON forms of results: the objects that gaol run --json and
// gaol eval --json print, and that the server and its clients exchange.
package resultjson
