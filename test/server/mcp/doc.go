// Package mcp tests the server's MCP tools end to end, over the unix socket and over standard input
// and output, with the client of the official SDK.
package mcp
