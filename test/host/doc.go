// Package host tests what the host shares with guests: files, commands and connections.
//
//	commands_*_test.go   programs of the guest that the host implements
//	servers_*_test.go    the host's connections to servers of guests: HTTP, WebSocket, event
//	                     streams, hostile servers, and what closes the connections
//	*_test.go            the tree of a runtime from the host, mounts, packages, snapshots, images
package host
