package service

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sharedCounter counts values that are open.
type sharedCounter struct {
	*shared[string, *openValue]
	opened, closed atomic.Int32
}

func newSharedCounter() *sharedCounter {
	s := &Service{log: slog.New(slog.DiscardHandler), tenants: &tenants{shared: true}, closing: make(chan struct{}, maxShared)}
	return &sharedCounter{shared: newShared[string, *openValue](s)}
}

// openValue is a value that counts its Close.
type openValue struct {
	key    string
	closed *atomic.Int32
}

func (v *openValue) Close() error {
	v.closed.Add(1)
	return nil
}

// use uses the value of a key while do runs.
func (c *sharedCounter) use(t *testing.T, key string, do func()) {
	t.Helper()
	err := c.shared.use(key, "", func() (*openValue, error) {
		c.opened.Add(1)
		return &openValue{key, &c.closed}, nil
	}, func(v *openValue) error {
		if v.key != key {
			t.Errorf("value %q of %q", v.key, key)
		}
		do()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *sharedCounter) check(t *testing.T, opened, closed int32) {
	t.Helper()
	synctest.Wait()
	if o, n := c.opened.Load(), c.closed.Load(); o != opened || n != closed {
		t.Errorf("%d opened, %d closed; want %d, %d", o, n, opened, closed)
	}
}

// A value is shared, and closed when it has not been used for some time.
func TestSharedIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSharedCounter()
		c.use(t, "a", func() {
			c.use(t, "a", func() {})
			c.use(t, "b", func() {})
			time.Sleep(2 * sharedIdle)
			c.check(t, 2, 1)
		})
		time.Sleep(sharedIdle / 2)
		c.use(t, "a", func() {})
		time.Sleep(sharedIdle * 3 / 4)
		c.check(t, 2, 1)
		time.Sleep(sharedIdle)
		c.check(t, 2, 2)
		c.use(t, "a", func() {})
		c.close()
		c.check(t, 3, 3)
	})
}

// The number of values is bounded: the least recently used one gives way.
func TestSharedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSharedCounter()
		var fill func(n int)
		fill = func(n int) {
			if n < maxShared {
				c.use(t, fmt.Sprint(n), func() { fill(n + 1) })
				time.Sleep(time.Millisecond)
				return
			}
			if err := c.shared.use("more", "", nil, nil); !errors.Is(err, errManyShared) {
				t.Error(err)
			}
		}
		fill(0)
		c.use(t, "more", func() {})
		c.check(t, maxShared+1, 1)
		if last := fmt.Sprint(maxShared - 1); c.byKey[last] != nil || c.byKey["0"] == nil { // the last one was free first
			t.Error("another value was closed")
		}
		c.close()
		c.check(t, maxShared+1, maxShared+1)
	})
}

// A value that cannot be opened is tried again with the next use.
func TestSharedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broken := newSharedCounter(), errors.New("broken")
		if err := c.shared.use("a", "", func() (*openValue, error) { return nil, broken }, nil); !errors.Is(err, broken) {
			t.Error(err)
		}
		c.use(t, "a", func() {})
		c.close()
		c.check(t, 1, 1)
	})
}
