// Package server is gaol's server: an HTTP API for programs in any language, on a unix socket and
// optionally on TCP.
//
//	unix socket ── peer credentials ──┐
//	                                  ├──> guard ──> quota ──> mux ─┬─ /v1           package api ──> package service ──> runtime
//	TCP, TLS ───── bearer token ──────┤                             ├─ /mcp          package mcpserver ─┘
//	               or anonymous ──────┘                             ├─ /api/sandbox  package api ──> package service
//	                                                                ├─ /             package playground
//	                                                                └─ /healthz, /readyz
//
// On a machine of a fleet, package fleet is behind guard: it passes requests for what other machines have to their servers, which
// serve them behind their own quotas.
//
// Being allowed to connect must not amount to root: see docs/server.md.
package server
