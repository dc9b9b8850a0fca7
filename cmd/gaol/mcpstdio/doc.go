// Package mcpstdio serves MCP on standard input and output, as clients start servers: as a proxy to a
// server's /mcp, which needs no privileges, or to an MCP server of this process.
//
//	client ── stdin, stdout ──> Proxy ─┬─ HTTP on a unix socket or TCP ──> gaol serve
//	                                   └─ server.Local ──> mcpserver, in this process
//
// Each request of the client is one HTTP request without a session, so that a restarted server goes unnoticed, and
// the server ends a call whose proxy was killed. A call whose outcome is unknown is not repeated.
package mcpstdio
