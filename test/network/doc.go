// Package network tests what guests reach outside of their jails, by the rules of the
// network scope, on an internet of its own.
//
//	programs_*_test.go   real programs that use the network by rule: npm, git, and clients of
//	                     HTTP, event streams and WebSockets, in jails and, for comparison,
//	                     outside; certificates are checked
//
// Programs that need packages of npm are in test/packages/internet.
package network
