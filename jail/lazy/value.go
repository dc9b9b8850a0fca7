package lazy

import "sync"

// Value returns a function that calls f until f succeeds, and returns that result from then on. It
// is safe for concurrent use.
func Value[T any](f func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var value T
	done := false
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return value, nil
		}
		v, err := f()
		if err == nil {
			value, done = v, true
		}
		return v, err
	}
}
