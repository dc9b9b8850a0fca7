// Package attack plays users of a server that want to be root, to reach sandboxes of other tenants, to
// read files of the machine that they may not read, or to slow other tenants down. Its tests run in the network
// of package internettest.
package attack
