// Package operations tests what operators need of a server: systemd, signals, logs, metrics and
// traces. Each server is a separate process: this test binary, which runs package daemon.
package operations
