package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify sends a state to systemd, if it has started the server.
func (p *process) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("notify systemd", "err", err)
	}
}

// extendTimeout is the message that the current state may take as long as d from now on.
func extendTimeout(d time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds())
}

// watch keeps systemd's watchdog from ending the server as long as no part of it is blocked.
func (p *process) watch(ctx context.Context) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		p.log.Warn("watchdog", "err", err)
	}
	if limit <= 0 {
		return
	}
	repeat(ctx, limit/2, func() {
		p.server.Alive()
		p.notify(daemon.SdNotifyWatchdog)
	})
}
