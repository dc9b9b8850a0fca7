// Package snippetservice runs snippets for tenants, see package snippets of the SDK.
//
//	POST /api/sandbox, MCP, session ──> Run ── quota ──> runner of tenant, adapter, preset ──> sandbox
//
// Tenants share no runners, because sandboxes are in the cgroup of their tenant. A runner is
// created on first use, and closed when it has not been used for some time.
package snippetservice
