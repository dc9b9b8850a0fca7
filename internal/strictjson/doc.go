// Package strictjson reads the JSON of requests: without duplicate names, invalid UTF-8, and text after
// the value, which readers interpret differently, and within bounds. The HTTP API, sessions, MCP, typed host functions
// and gaol snippet run use it. It encodes results, too, for package runtime, whose types have the names of JSON in tags.
package strictjson
