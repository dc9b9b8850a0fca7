// Package session is the server's half of the protocol in package gaol/internal/session: it serves
// calls in both directions on one WebSocket.
//
//	Handler ── a connection ──> session ─┬─ read ── requests ──> task ── package service
//	                                     │                         └── output, events, result ──┐
//	                                     ├─ calls of host functions ────────────────────────────┤
//	                                     └─ <───────────────────────────────────────── send ────┘
//
// One goroutine reads, and never waits for the client. Each request runs in a goroutine: its task. Frames
// are written as they arise, one at a time, so that a slow client slows down the tasks.
//
// Files, archives and connections to guests' servers are transferred as the client returns credit, with
// a bounded amount on the way. The methods on them use package service, as the HTTP API does.
//
// Everything that a session has created ends with it, except for detached sandboxes.
package session
