// Package batch keeps the batch runs of tenants in the queues of an engine, and makes them.
//
// A server acknowledges a batch run when the engine has stored it. A worker takes the message, calls the HTTP API of its server, and
// creates the result, which fails if there is one. Then it deletes the message. If the worker is lost, its lease of the message ends
// after ten seconds, and another worker takes it. The first result counts.
package batch
