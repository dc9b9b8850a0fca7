// Package inherited tests servers of one trusted client, on a socket that they inherit. Each server is a
// process of its own: this test binary, which runs package daemon.
package inherited
