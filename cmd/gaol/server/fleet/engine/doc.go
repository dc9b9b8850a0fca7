// Package engine keeps the small records of a fleet, and carries hints between its nodes, by NATS JetStream.
//
// The engine is a program beside gaol, nats-server, which a [Server] starts on the machines that have the fleet's authority: on one,
// or as a [Cluster] on three. It listens on loopback addresses only, and nodes reach it through the fleet's listener: see [Tunnel].
// No request waits for it: while it is away, sandboxes and runs continue.
package engine
