// Package gateway connects a network namespace that has no interface but lo with sockets
// of the host.
//
//	guest: connect 93.184.215.14:443
//	  │ AnyIP: every address is one of lo's
//	  ▼
//	BPF sk_lookup ── ports of localhost that are allowed ──> the guest's own servers
//	  │
//	  └── everything else ──> one listener of the host, in the namespace
//
// The listener's connections have the destination that the guest asked for as their local
// address. Each port of localhost that leads to the host has listeners of its own. Datagrams reach only the resolver's address and, if that is allowed, localhost.
//
// What confines the guest is that the namespace has no other interface. The BPF program
// decides only between the guest's servers and the host's listener. It belongs to the
// namespace as long as the Gateway is open, and ends with the host's process.
//
// The runs of a jail share its namespace. [Gateway.Owner] says by which cgroup a socket was
// made, and [DenyLocalhost] keeps a cgroup from the servers of the others.
//
// It needs Linux 5.9, with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF.
package gateway
