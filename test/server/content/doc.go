// Package content tests the server's API for the content of sandboxes: files, archives,
// snapshots, and the servers of guests. Guests and other tenants are hostile.
package content
