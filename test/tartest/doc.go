// Package tartest makes tar archives, valid and hostile ones, for tests of the packages that
// read them.
package tartest
