// Package egress controls the traffic that leaves a sandbox. It answers the guest's look-ups, decides about
// each of its connections by the rules of the network scope, and dials the allowed ones. It knows
// nothing of jails. It takes sockets, whose local addresses are the destinations that the guest
// asked for.
//
//	guest ── DNS ──> Server ── LookUp? ──> host's resolver
//	  ▲                │
//	  └── address ─────┘  one synthetic address for each name
//
//	guest ── TCP ──> relay ── Opened ─────────> Server ── Connect? ──> look up by name ── Resolved? ─┐
//	                   │  ▲                                                                   │
//	                   │  └── the relay's socket, connected ────────────────────────────────────────┘
//	                   └── the guest's first bytes: TLS, HTTP/1, or something else ──> upstream
//
// The connections themselves are in package relay, a confined process for each server that is
// started with the first connection and ends when there has been none for some time. So the kernel
// charges the sandbox's cgroup for their buffers. This process has a descriptor of a connection while
// it dials. Everything that a relay reports is checked and bounded: its
// documentation lists the reports that could be false.
//
// # Names
//
// The guest never learns the real address of a host. Each name that may be resolved has
// one synthetic IPv4 and IPv6 address, so that the destination of a connection is a name,
// and a rule about a name needs no list of addresses. The host's resolver is asked at each
// look-up, to learn whether the name exists, and again when a connection is dialed. The
// addresses that it returns are checked right before the connect, so that a name that
// resolves to a private address, now or later, is refused.
//
// A synthetic address belongs to its name at least until the answer's TTL has expired. A connection to a
// synthetic address without a name is refused. Reverse look-ups find no names.
//
// # Ports of the host
//
// The host's localhost is not reached, except for the ports that [policy.World] HostPorts names and the
// rules allow. The guest connects to them on its own localhost. No proxy is used, and the data is
// not read.
//
// # The guest's first bytes
//
// If the rules distinguish names on the port, the first bytes that the guest sends must
// agree with the name it connected to: the server name of a TLS ClientHello, or the host
// of every HTTP/1 request. A connection without a server name, HTTP/2 without TLS, and the
// method CONNECT are refused. Other protocols pass where no server takes them for HTTP: if the
// server speaks first, if they are known, or if they end no line before it answers. The
// server's bytes pass without delay, because in many protocols it speaks first.
//
// HTTP/1 is parsed and written anew by net/http, so that the server sees the requests that
// were checked. Names of header fields become canonical.
//
// # Not protected against
//
// A server that serves several names can be asked for another one inside TLS, and a
// protocol's bytes after the first ones are not read: names that share a server can be
// reached through each other (domain fronting). A name that may be resolved can carry
// data out in its labels if a rule allows *.NAME.
package egress
