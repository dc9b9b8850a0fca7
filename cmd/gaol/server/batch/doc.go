// Package batch keeps the batch runs of tenants in the queues of an engine, and makes them.
//
// A gateway acknowledges a batch run when the engine has stored it. Any worker takes it, makes the run by the HTTP API of its own
// server, and stores the result under the name of the batch run, which can be created once only. Then it deletes the message. So a
// worker that is lost, or that is late, changes nothing: another one gets the message after ten seconds, and the first result counts.
package batch
