// Package operation describes each operation of the server once: its name and documentation, its input and
// output, the events that it sends, and the function that performs it. The HTTP API and sessions are codecs
// over this table, MCP tools are compositions of its entries, and the OpenAPI document derives from it.
//
//	HTTP request -----+                  +----------> methods of package service
//	                  +--> Decode --> Do
//	session request --+                  ^
//	MCP call --> Decode --> tool --------+
//
// A codec decodes the input from its protocol, prepares a [Call] with the streams that the protocol has,
// and encodes the output, the events and the error.
package operation
