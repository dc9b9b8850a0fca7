// Package tenant identifies the callers of a server: by the peer credentials of a unix socket, or by
// a bearer token.
package tenant
