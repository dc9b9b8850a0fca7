// Package publish passes connections to ports of the host on to servers of a guest.
//
//	client ──> port of the host ──> Server ── Guest.Dial ──> the guest's server
//
// A connection that comes before the guest listens waits for it, for 10 seconds at most, and
// is then reset. A port serves at most 256 concurrent connections; others wait in the kernel's
// queue. Both sides are hostile: what one sends and the other does not read fills only
// buffers of the kernel, which are bounded.
package publish
