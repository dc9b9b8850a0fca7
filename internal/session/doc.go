// Package session defines the protocol of GET /v1/session of a gaol server: calls in both directions
// on one WebSocket. docs/session.md describes it for authors of clients. The server's half is
// cmd/gaol/server/session, the Go client's is runtime/client.
//
//	client -> server                            server -> client
//
//	 1 request  JSON: Request                   16 result   JSON
//	 2 cancel                                   17 error    JSON: Problem
//	 3 stdin    bytes; none: end of input       18 stdout   bytes
//	 5 answer   JSON: the value of a call       19 stderr   bytes
//	 6 failure  JSON: Failure of a call         20 event    JSON: Event
//	 7 signal   its name, for a run             21 call     u32 function | JSON array
//	                                            22 abandon  of a call
//
//	in both directions:  4 credit   u8 stream | u32 bytes
//
// Each binary message is a frame: u8 kind | u32 id | body. Integers are big-endian. The id is that of
// a request, chosen by the client, or of a call of a host function, chosen by the server. It is not
// 0.
//
//	client                                   server
//	request 1 createSandbox ------------->
//	         <------------------- result 1   {"id": "sb-..."}
//	request 2 runIn   ------------------->
//	         <------------------- call 1     the program calls a function of the client
//	answer 1          ------------------->
//	         <------------------- stdout 2
//	         <------------------- result 2   nothing follows on request 2
//
// A result or an error ends a request. Its id can then be used again.
//
// Each request has four streams: standard input and, from the server, standard output, standard error
// and events. A sender may begin a stream with [Window] bytes; the receiver returns credit for the
// bytes that it has processed. So neither side buffers more, and a stream without a reader does not block
// another one. A frame may be sent while any credit is left, even if the frame is longer.
//
// Everything that a client sends is hostile: [Parse] accepts the frames above only. After an error
// the server closes the connection.
package session
