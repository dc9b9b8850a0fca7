// Package fleet tests the fleet of gaol serve end to end: several servers of this machine, each a process with its own store, unix
// socket, TCP port and listener for other nodes, all on loopback addresses.
//
//	node_test.go       starts and stops nodes, and reads their logs
//	request_test.go    sends requests as a tenant, and commands as an administrator
//	alone_test.go      a server without a fleet has neither ports nor an engine
//	fleet_test.go      the tests that share one fleet of three nodes
//	join_test.go       tokens, certificates, and other clients of the listener for nodes
//	forward_test.go    HTTP requests about sandboxes of other nodes
//	session_test.go    sessions with sandboxes on other nodes
//	placement_test.go  drained nodes
//	remove_test.go     removed nodes
//	loss_test.go       nodes that are killed, or stopped for longer than the fleet waits
//	engine_test.go     an engine that is killed, or does not answer
//	batch_test.go      batch runs, and the loss of their nodes and engine
//	chaos_test.go      load while nodes and the engine are killed at random
//	space_test.go      makes network namespaces and connects them
//	partition_test.go  load while parts of the network are down
//	upgrade_test.go    load while nodes are upgraded to other protocols
//	scale_test.go      the runs per second of one worker and of two
//	docs_test.go       starts nodes by the unit of docs/fleet.md
//	restore_test.go    replaces the machine with the engine by its backup
package fleet
