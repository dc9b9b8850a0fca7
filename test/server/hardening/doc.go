// Package hardening sends a server what a correct client does not: malformed, slow, large and very many
// requests, and those that web pages of other sites can cause.
package hardening
