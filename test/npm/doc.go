// Package npm compares the speed of the npm package in cmd/npm with that of the Go packages and of other
// libraries. The package's own tests are in cmd/npm/test.
package npm
