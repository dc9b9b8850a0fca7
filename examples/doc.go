// Package examples has complete programs that use gaol, each in a folder with a README. It
// contains the tests of the programs that are no part of this module.
package examples
