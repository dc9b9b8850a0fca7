package snippetservice

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// counter counts runners that are open.
type counter struct {
	mu             sync.Mutex
	opened, closed int
}

func (c *counter) create() (*snippets.Runner, func() error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	return &snippets.Runner{}, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed++
		return nil
	}, nil
}

func (c *counter) check(t *testing.T, opened, closed int) {
	t.Helper()
	synctest.Wait()
	if c.opened != opened || c.closed != closed {
		t.Errorf("%d opened, %d closed; want %d, %d", c.opened, c.closed, opened, closed)
	}
}

func newRunners() *runners {
	return &runners{log: slog.New(slog.DiscardHandler), byKey: map[key]*runner{}}
}

// use acquires a runner, and opens it.
func use(t *testing.T, rs *runners, c *counter, k key) *runner {
	t.Helper()
	r, err := rs.acquire(k, c.create)
	if err == nil {
		_, err = r.open()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A runner is shared, and closed when it has not been used for some time.
func TestRunnersIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rs := &counter{}, newRunners()
		a, b := use(t, rs, c, key{tenant: "a"}), use(t, rs, c, key{tenant: "a"})
		if a != b {
			t.Error("two runners for one key")
		}
		other := use(t, rs, c, key{tenant: "b"})
		rs.release(a, false)
		time.Sleep(2 * runnerIdle)
		c.check(t, 2, 0)
		rs.release(b, false)
		time.Sleep(runnerIdle / 2)
		use(t, rs, c, key{tenant: "a"})
		rs.release(a, false)
		time.Sleep(runnerIdle * 3 / 4)
		c.check(t, 2, 0)
		time.Sleep(runnerIdle)
		c.check(t, 2, 1)
		rs.release(other, false)
		_ = rs.close()
		c.check(t, 2, 2)
	})
}

// Runs with different lint rules have different runners.
func TestRunnersRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rs := &counter{}, newRunners()
		one, two := &lint.Rules{}, &lint.Rules{Names: map[string]string{"alert": "no window"}}
		all := map[*runner]bool{}
		for _, rules := range []*lint.Rules{nil, one, two, one} {
			r := use(t, rs, c, key{tenant: "a", rules: rules})
			all[r] = true
			rs.release(r, false)
		}
		if len(all) != 3 {
			t.Errorf("%d runners, want 3", len(all))
		}
		_ = rs.close()
		c.check(t, 3, 3)
	})
}

// A request that names another adapter than the settings is not checked by the settings' lint rules.
func TestKeyRules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config": fmt.Sprintf(`{"snippets": {"adapter": "directive", "lintRules": "%s/rules.json"}}`, dir), "rules.json": `{"names": {"alert": "no window"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := settings.Read(filepath.Join(dir, "config"))
	if err != nil {
		t.Fatal(err)
	}
	directive := newKey(set, "a", presetDefault, snippets.Directive)
	if directive.rules == nil || directive.rules.Names["alert"] == "" || directive != newKey(set, "a", presetDefault, snippets.Directive) {
		t.Errorf("%+v", directive.rules)
	}
	if none := newKey(set, "a", presetDefault, snippets.None); none.rules != nil {
		t.Errorf("%+v", none.rules)
	}
}

// After a reload, runners of the old settings are closed, those in use when their runs have ended.
func TestRunnersRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rs := &counter{}, newRunners()
		old, now := &settings.Settings{}, &settings.Settings{}
		busy, idle := use(t, rs, c, key{settings: old, tenant: "a"}), use(t, rs, c, key{settings: old, tenant: "b"})
		rs.release(idle, false)
		rs.retire(now)
		c.check(t, 2, 1)
		if next := use(t, rs, c, key{settings: now, tenant: "a"}); next == busy {
			t.Error("the old runner is used")
		} else {
			rs.release(next, false)
		}
		rs.release(busy, false)
		c.check(t, 3, 2)
		_ = rs.close()
		c.check(t, 3, 3)
	})
}

// The number of runners is bounded: the least recently used one gives way.
func TestRunnersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rs := &counter{}, newRunners()
		var all []*runner
		for i := range maxRunners {
			all = append(all, use(t, rs, c, key{tenant: fmt.Sprint(i)}))
		}
		_, err := rs.acquire(key{tenant: "one more"}, c.create)
		if e, ok := errors.AsType[*service.Error](err); !ok || e.Code != service.Exceeded || e.RetryAfter == 0 {
			t.Error(err)
		}
		for _, i := range []int{7, 3} {
			rs.release(all[i], false)
			time.Sleep(time.Second)
		}
		use(t, rs, c, key{tenant: "one more"})
		c.check(t, maxRunners+1, 1)
		if len(rs.byKey) != maxRunners || rs.byKey[all[7].key] != nil || rs.byKey[all[3].key] == nil {
			t.Error("another runner was closed")
		}
		for _, r := range rs.byKey {
			r.uses = 0
		}
		_ = rs.close()
		c.check(t, maxRunners+1, maxRunners+1)
	})
}

// A runner that cannot be opened is tried again with the next snippet.
func TestRunnersFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rs := &counter{}, newRunners()
		broken := errors.New("broken")
		r, err := rs.acquire(key{}, func() (*snippets.Runner, func() error, error) { return nil, nil, broken })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.open(); !errors.Is(err, broken) {
			t.Error(err)
		}
		rs.release(r, true)
		rs.release(use(t, rs, c, key{}), false)
		_ = rs.close()
		c.check(t, 1, 1)
	})
}
