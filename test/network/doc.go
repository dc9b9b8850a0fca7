// Package network tests what guests reach outside of their jails, by the rules of the
// network scope, on an internet of its own.
package network
