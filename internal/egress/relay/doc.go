// Package relay carries the connections of one sandbox in a separate process: it accepts the guest's
// connections, creates the sockets to servers, reads the guest's first bytes, and copies. So the kernel
// charges the sandbox for buffers, descriptors and processor time. Package egress is its host: it
// decides about each connection, and connects the sockets, which the relay's filter forbids.
//
//	relay                                      host
//	       <── Setup: counters, listeners ─────
//	accept ─── Opened: from, to ──────────────> whose, allowed by rules and limits? name resolved
//	       <── Need ────────────────────────── for each address of the server
//	socket ─── Socket: descriptor ────────────> address allowed? connect
//	       <── Connected: name, port ────────── closes its copy
//	sniff, copy; counters in shared memory
//	       ─── Redial (HTTP) ─────────────────> as after Opened; NoServer if that fails
//	       ─── Ended: outcome, reason ────────> event, usage
//	       <── Closed ───────────────────────── the id is free. Instead of Connected: reset the guest
//
// A relay without connections ends, and the next connection starts another one.
//
// # Not protected against
//
// A relay that hostile bytes have taken over can pass any bytes on connections that the host has
// allowed, so that the name in TLS or HTTP is not checked; lie about the counters, ends and
// denials of its sandbox; and read its sandbox's traffic. Behind a proxy it can send other requests
// to that proxy. It can connect to nothing that the rules deny by address.
package relay
