package egress

import (
	"sync"
	"time"
)

const (
	// cacheTime is how long an answer of the host's resolver is used: a program asks for both
	// families, and often again for the next connection. [net.Resolver] does not return the
	// TTL, so that it is short.
	cacheTime = 2 * time.Second

	// maxCached bounds the answers that are kept.
	maxCached = 1024
)

// families are the IP versions of a host's addresses.
type families struct{ v4, v6 bool }

// cache keeps the latest answers of the host's resolver. The addresses themselves are not kept:
// each dial looks them up and checks them.
type cache struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[string]cached
}

// cached is an answer: families or an error.
type cached struct {
	families families
	err      error
	expires  time.Time
}

func (c *cache) get(host string) (a cached, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok = c.answers[host]
	return a, ok && c.now().Before(a.expires)
}

// put keeps an answer. If there are too many, it removes all others.
func (c *cache) put(host string, f families, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxCached {
		c.answers = map[string]cached{}
	}
	c.answers[host] = cached{f, err, c.now().Add(cacheTime)}
}
