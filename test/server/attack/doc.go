// Package attack plays users of a server that want to be root, to reach sandboxes of other tenants, or to
// read files of the machine that they may not read.
package attack
