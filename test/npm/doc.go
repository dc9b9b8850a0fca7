// Package npm tests what the npm package in cmd/npm has in common with the Go packages, and compares
// their speed. The package's own tests are in cmd/npm/test.
package npm
