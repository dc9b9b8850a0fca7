// Package fleet connects servers on many machines, so that clients can use any of them.
//
//	client ── request ──> node A ──┬─ own sandboxes ──> package service
//	                               └─ mTLS ──> node B ──> package service
//
// Each node owns its sandboxes, whose ids name it: sb-NODE-RANDOM. The others forward requests about them, without decoding them.
// New sandboxes and single runs go to the node that received them or, when it is busy, to another one. Lists are collected from
// all nodes. What a request names, such as a snapshot, a node gets from another one first. A node that is drained gives its sandboxes
// to others; its MOVED record says where one is then.
//
// Package identity gives nodes their certificates, package engine keeps the records that all of them share, and package member
// knows the state of each node. No request waits for the engine.
package fleet
