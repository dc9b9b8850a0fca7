// Package internettest makes an internet for tests: a network namespace in which every
// address is a local one, with a name server, and with servers of the tests. Nothing leaves
// it.
package internettest
