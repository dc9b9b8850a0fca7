// Package fleet connects servers on many machines, so that clients can use any of them.
//
//	client ── request ──> node A ──┬─ own sandboxes ──> package service
//	                               └─ mTLS ──> node B ──> package service
//
// Each node owns its sandboxes, whose ids name it: sb-NODE-RANDOM. The others forward requests about them, without decoding them.
// New sandboxes and single runs go to the node that received them or, when it is busy, to another one. Lists are collected from
// all nodes. Before a node serves a request that names a snapshot or an image, it copies a missing one from another node. A draining
// node moves its sandboxes to others, and records their new nodes in the bucket MOVED.
//
// Package identity gives nodes their certificates, package engine keeps the records that all of them share, and package member
// knows the state of each node. Only batch runs, moves and changes of the fleet need the engine.
package fleet
