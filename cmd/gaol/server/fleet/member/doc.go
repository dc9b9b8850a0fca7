// Package member knows the nodes of a fleet: their addresses and states, how busy they are, and which of them gets new work.
//
//	joining ──> live <──> suspect ──> dead
//	              │ ──> draining ──> left
//
// Each node renews its record in the engine, and sends a hint each second. A node without either for some seconds is suspect:
// requests are still tried. It is dead when another node, which had the engine all that time, cannot reach it either. That is final: a
// node that finds out that it is dead ends its sandboxes.
package member
