// Package service serves a server's tenants, without HTTP: it runs programs and
// snippets, and keeps sandboxes. The HTTP API, MCP and sessions are built on it.
//
//	Service ─┬─ Run, Evaluate ───────> an unused sandbox, from a pool
//	         └─ CreateSandbox ──> Sandbox ── Run, Command, Evaluate, ... ── Delete, or its timeouts
//
// All methods take the tenant that calls them. A sandbox that belongs to another tenant does not
// exist for them. Data from tenants is hostile: requests are checked against the server's settings
// and quotas.
//
// [Metrics] counts the server's operations, for Prometheus. Labels have a bounded number of values: names of
// operations, causes and limits. A tenant is a label only if the server's settings name it; all others
// together are "other".
package service
