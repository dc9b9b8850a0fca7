// Package service has what a server does for its tenants, without HTTP: it runs programs and
// snippets, and keeps sandboxes. The HTTP API, MCP and sessions are built on it.
//
//	Service ─┬─ Run, Evaluate ───────> a sandbox of its own, from a pool
//	         └─ CreateSandbox ──> Sandbox ── Run, Command, Evaluate, ... ── Delete, or its timeouts
//
// All methods take the tenant that calls them. A sandbox that belongs to another tenant does not
// exist for them. What tenants send is hostile: requests are checked against the server's settings
// and quotas.
package service
