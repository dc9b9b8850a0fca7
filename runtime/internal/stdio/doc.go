// Package stdio moves the standard streams of a run between its pipes, or its terminal, and
// the host.
//
//	with sinks:    io.Reader ──> pipe ──> run ──> pipe ── Pump ──> Sink: Capture, EventSink, Lines
//	without:       caller    ──> pipe or terminal ──> run ──> pipe or terminal ──> caller
//
// EventSink passes the output on as events of a Feed, whose consumer applies backpressure: a
// slow consumer blocks the run, and the host holds two buffers of each output at most. After
// the run's end nothing waits for the consumer: the rest of the pipes is read immediately.
package stdio
