package resultjson

import (
	"net/netip"

	"gaol/runtime"
)

// SessionRun is a run as sessions have it: all of a [runtime.Result].
type SessionRun struct {
	*Run
	QueuedMs       float64 `json:"queuedMs"`
	Calls          []Call  `json:"calls"`
	CallsTruncated bool    `json:"callsTruncated"`
}

// NewSessionRun converts a result.
func NewSessionRun(res *runtime.Result) *SessionRun {
	return &SessionRun{NewRun(res), Milliseconds(res.Queued), newCalls(res.Calls), res.Truncated.Calls}
}

// Result converts a run back.
func (r *SessionRun) Result() *runtime.Result {
	res := r.Run.Result()
	res.Queued, res.Truncated.Calls = fromMilliseconds(r.QueuedMs), r.CallsTruncated
	for _, c := range r.Calls {
		res.Calls = append(res.Calls, c.call())
	}
	return res
}

func newCalls(calls []runtime.Call) []Call {
	list := []Call{}
	for _, c := range calls {
		list = append(list, newCall(c))
	}
	return list
}

func newCall(c runtime.Call) Call {
	return Call{c.Name, Milliseconds(c.Duration), c.Arguments, c.Result, c.Error}
}

// SessionEvent is an event of a run as sessions have it. Output is not one: sessions send it as
// bytes. Of the pointers, the one that the type names is not nil.
type SessionEvent struct {
	Type       string             `json:"type"` // log, call, denial or connection
	Log        *Log               `json:"log,omitempty"`
	Call       *Call              `json:"call,omitempty"`
	Denial     *runtime.Denial    `json:"denial,omitempty"`
	Connection *SessionConnection `json:"connection,omitempty"`
}

// SessionConnection is a connection to a host outside.
type SessionConnection struct {
	Host     string         `json:"host"`
	Address  netip.AddrPort `json:"address"`
	Port     uint16         `json:"port"`
	Rule     string         `json:"rule"`
	BytesIn  int64          `json:"bytesIn"`
	BytesOut int64          `json:"bytesOut"`
	MS       float64        `json:"ms"`
	Outcome  string         `json:"outcome"`
}

// NewSessionEvent converts an event.
func NewSessionEvent(e runtime.Event) *SessionEvent {
	switch e := e.(type) {
	case runtime.LogEvent:
		return &SessionEvent{Type: "log", Log: &Log{e.Log.Level, e.Log.Text, Milliseconds(e.Log.At)}}
	case runtime.CallEvent:
		c := newCall(e.Call)
		return &SessionEvent{Type: "call", Call: &c}
	case runtime.DenialEvent:
		return &SessionEvent{Type: "denial", Denial: &e.Denial}
	case runtime.ConnectEvent:
		c := e.Connection
		return &SessionEvent{Type: "connection", Connection: &SessionConnection{c.Host, c.Address, c.Port, c.Rule, c.BytesIn, c.BytesOut, Milliseconds(c.Duration), c.Outcome}}
	}
	return &SessionEvent{Type: "unknown"}
}

// Event converts an event back. The error says that this version does not have it.
func (e *SessionEvent) Event() (runtime.Event, error) {
	switch {
	case e.Type == "log" && e.Log != nil:
		return runtime.LogEvent{Log: e.Log.log()}, nil
	case e.Type == "call" && e.Call != nil:
		return runtime.CallEvent{Call: e.Call.call()}, nil
	case e.Type == "denial" && e.Denial != nil:
		return runtime.DenialEvent{Denial: *e.Denial}, nil
	case e.Type == "connection" && e.Connection != nil:
		c := *e.Connection
		return runtime.ConnectEvent{Connection: runtime.Connection{
			Host: c.Host, Address: c.Address, Port: c.Port, Rule: c.Rule, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
			Duration: fromMilliseconds(c.MS), Outcome: c.Outcome,
		}}, nil
	}
	return nil, errUnknown(e.Type)
}
