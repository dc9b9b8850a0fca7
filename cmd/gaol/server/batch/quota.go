package batch

import (
	"sync"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/quota"
)

// hourly counts the bytes that tenants have stored within the life of a result.
type hourly struct {
	mu   sync.Mutex
	held map[string]*quota.Reservation // of a tenant, of the current part of the time
}

// part is the time after which bytes are counted separately: they count for up to this much longer.
const part = 5 * time.Minute

// add counts bytes of a tenant, or returns a [quota.Exceeded].
func (h *hourly) add(a *quota.Account, tenant string, bytes int) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.held[tenant]
	if now == nil {
		if now, err = a.Reserve(quota.Limits{}); err != nil {
			return err
		}
		h.held[tenant] = now
		time.AfterFunc(part, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.held, tenant)
			time.AfterFunc(engine.ResultLife, now.Release)
		})
	}
	return now.Add(quota.Limits{BatchBytes: int64(bytes)})
}
