// Package lifecycle tests how hosts and jails begin and end: hosts that are killed, that
// lack descriptors or that live in a chroot, and what they leave to the kernel and to the
// next host.
//
// The test binary is the host, too: hosts_test.go lists what it can do instead of running
// tests.
//
// The files isolation_*_test.go test that sandboxes are the same in each isolation. `make test-runc`
// runs other packages' tests in containers, too.
package lifecycle
