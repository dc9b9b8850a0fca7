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
	held map[string]*hour // of a tenant
}

// hour holds the bytes of one part of the time.
type hour struct {
	*quota.Reservation
	end time.Time // of adding
}

// part is the time after which bytes are counted separately: they count for up to this much longer.
const part = 5 * time.Minute

// add counts bytes of a tenant, or returns a [quota.Exceeded].
func (h *hourly) add(a *quota.Account, tenant string, bytes int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.held[tenant]
	if now == nil || time.Now().After(now.end) {
		r, err := a.Reserve(quota.Limits{})
		if err != nil {
			return err
		}
		now = &hour{r, time.Now().Add(part)}
		h.held[tenant] = now
		time.AfterFunc(part+engine.ResultLife, func() {
			r.Release()
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.held[tenant] == now {
				delete(h.held, tenant)
			}
		})
	}
	return now.Add(quota.Limits{BatchBytes: int64(bytes)})
}
