package hostcall

import (
	"time"

	"gaol/internal/wire"
)

// pendingCall is a call from its admission to its answer.
type pendingCall struct {
	wire.Call
	key      uint64     // ID, or a larger number for a call of Do
	name     string     // of the function
	size     int        // of the arguments
	other    *otherCall // nil for a call on the control channel
	began    time.Time
	index    int // of its record; -1: it has none
	answered bool
	ctx      callContext
}

// begin sets the fields that all calls have.
func (d *Dispatcher) begin(p *pendingCall) *pendingCall {
	p.began, p.index = time.Now(), -1
	p.ctx.run, p.ctx.deadline, p.ctx.late = d.ctx, p.began.Add(d.limits.Timeout), d.late
	return p
}
