// Package schema derives JSON Schemas from the structs of requests and results, and decodes requests strictly by
// them. The server's operations, its MCP tools and the tools of package sandboxtools share it.
//
//	struct with tags ──> Set.Input ─┬─> Decode: JSON ──> syntax, bounds, types ──> struct
//	                                └─> View: the schema that clients get
//
// The tags are json and the tags of package huma, such as doc, maxLength, pattern, minimum, maxItems and enum.
// Lengths count characters, not bytes.
package schema
