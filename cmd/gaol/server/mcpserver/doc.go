// Package mcpserver offers sandboxes to agents by the Model Context Protocol: tools that run code,
// and the files of sandboxes as resources.
//
//	POST, GET, DELETE /mcp ──> Server.ServeHTTP ─┬─ protocol 2026-07-28 and later: without sessions
//	                                             └─ earlier ones: sessions, bounded for each tenant
//	gaol mcp ── stdio ───────> Server.MCP ──> tools ──> package operation ──> package service
//
// The tools are a table of operations that consist of the server's operations: their schemas, decoding, bounds and
// errors come from there. This package adds text for models, by the tags of results: see paragraphs. It shortens output, explains errors, and names the
// permission that a denied operation needs. A tool's description is the Doc of its row: see runTools, processTools and
// the other functions that end in Tools.
//
// Tenants share no MCP server, so that nothing of one is visible to another. A guest
// that fails is a result with isError; so is a call with wrong arguments, because the model can
// correct it.
//
// It does not protect a model from persuasion: the output of guests, and names of their
// files, are untrusted text.
package mcpserver
