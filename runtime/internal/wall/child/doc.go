// Package child starts agents as child processes. They are no wall: tests use them.
package child
