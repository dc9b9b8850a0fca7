// Package server tests the server's API in this process. Guests and other tenants are hostile.
//
//	content_*_test.go     files, archives, snapshots, and the servers of guests
//	hardening_*_test.go   malformed, slow, large and very many requests, and those that web pages
//	                      of other sites can cause
//	longlived_*_test.go   what outlives a request: processes, contexts, and the events of runs
//	mcp_*_test.go         MCP over the unix socket and over standard input and output, with the
//	                      client of the official SDK
//	openapi_*_test.go     each request and response is validated by the OpenAPI document, and
//	                      random requests are made from it
//	session_*_test.go     GET /v1/session, with package runtime/client and with frames that no
//	                      client of ours sends
//	snippets_*_test.go    POST /api/sandbox, and the MCP tools of snippets
//
// Servers that are processes of their own are tested in operations, and attacks of the server's users in attack.
package server
