// Package netprograms tests real programs that use the network by rule: npm, git, and
// clients of HTTP, event streams and WebSockets. They run in jails and, for comparison,
// outside, on an internet of the tests' own. Certificates are checked.
//
// Programs that need packages of npm are in test/packages/internet.
package netprograms
