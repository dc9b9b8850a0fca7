// Package operations tests what operators need of a server: systemd, signals, logs, metrics and
// traces. Each server is a process of its own: this test binary, which runs package daemon.
//
// The files inherited_*_test.go test servers of one trusted client, on a socket that they inherit.
package operations
