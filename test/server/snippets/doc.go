// Package snippets tests snippets of the server end to end: POST /api/sandbox, and the MCP tools.
package snippets
