// Package quota bounds the use of a server by each tenant, and shares the server fairly.
//
//	Server ── Account(tenant) ─┬─ Request ──> may a request be served now
//	                           ├─ Reserve ──> a sandbox, until it is released
//	                           └─ Admit ───> a run: waits for its turn, until it is released
//
// The nodes of a fleet share the limits that settings name: see [Ledger].
//
// A request above a quota is refused immediately with an [Exceeded] with the time to retry. A run
// within its tenant's quota waits for its turn: see [Account.Admit].
package quota
