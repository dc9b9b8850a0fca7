// Package quota bounds what each tenant of a server uses, and shares the server fairly.
//
//	Server ── Account(tenant) ─┬─ Request ──> may a request be served now
//	                           ├─ Reserve ──> a sandbox, until it is released
//	                           └─ Admit ───> a run: waits for its turn, until it is released
//
// What exceeds a quota is refused at once with an [Exceeded], which says when to try again. A run
// within its tenant's quota waits for its turn: see [Account.Admit].
package quota
