// Package content tests what the server's API does with the content of sandboxes: files, archives,
// snapshots, and the servers of guests. Guests and other tenants are hostile.
package content
