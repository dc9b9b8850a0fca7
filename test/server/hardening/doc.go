// Package hardening sends a server requests that a correct client does not send: malformed, slow, large and very many
// requests, and those that web pages of other sites can cause.
package hardening
