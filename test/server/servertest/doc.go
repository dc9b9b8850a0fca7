// Package servertest starts servers for end-to-end tests, and sends them requests as any local user.
package servertest
