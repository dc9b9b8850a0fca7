// Package session tests GET /v1/session of a server, with package runtime/client and with frames that
// no client of ours sends.
package session
