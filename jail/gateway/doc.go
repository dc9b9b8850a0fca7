// Package gateway connects a network namespace whose only interface is lo with sockets of
// the host.
//
//	guest: connect 93.184.215.14:443
//	  │ AnyIP: every address is one of lo's
//	  ▼
//	BPF sk_lookup ── ports of localhost that are allowed ──> the guest's own servers
//	  │
//	  └── everything else ──> one listener of the host, in the namespace
//
// The listener's connections have the destination that the guest asked for as their local
// address. Each port of localhost that leads to the host has separate listeners. Datagrams
// reach only the resolver's address and, if that is allowed, localhost.
//
// The guest is isolated because lo is the namespace's only interface. The BPF program
// decides only between the guest's servers and the host's listener. It belongs to the
// namespace as long as the Gateway is open, and ends with the host's process.
//
// The runs of a jail share its namespace. [Gateway.Owner] returns the cgroup that created a
// socket, and [DenyLocalhost] denies a cgroup access to the servers of other cgroups.
//
// Kernels without socket look-ups, such as gVisor's, redirect connections by NAT, and the owner of a socket is found by the files
// of processes. [DenyLocalhost] does not work there. NAT needs CAP_NET_RAW.
//
// Otherwise it needs Linux 5.9, with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF.
package gateway
