// Package mcpstdio serves MCP on standard input and output, as clients start servers: as a proxy to a
// server's /mcp, which needs no privileges, or for an MCP server of this process.
//
//	client ── stdin, stdout ──> Serve ──> Proxy ── HTTP on a unix socket or TCP ──> gaol serve
//	                              └─────> mcpserver, in this process
//
// The SDK speaks the client's protocol version on one side and its own newest one on the other, so
// that a restarted server goes unnoticed. A call whose outcome is unknown is not repeated.
package mcpstdio
