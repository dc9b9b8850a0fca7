// Package agent is the half of an isolation that runs inside a wall, such as a virtual machine: a native sandbox, which
// package remote uses from outside by one connection.
//
// Each operation is a stream of package mux that remote opens: a request, its reply, and for some of them bytes or further
// messages. A message is a length, u32, and JSON.
//
//	remote                                           agent
//	{"op":"start","in":{"process":1,...}} -->
//	               <-- {"out":{"pid":2}}
//	               <-- {"connect":"203.0.113.1:443"}   the process connects a socket
//	{"allowed":true} -->
//	               <-- {"exit":{...}}
//
// A guest may have taken over the agent. So remote bounds its messages and the time of its answers, and relies on
// neither for more than that guest itself.
package agent
