// Package isolation tests that sandboxes are the same in each isolation. `make test-runc` runs the
// other packages' tests in containers, too.
package isolation
