package kernfile

import "sync"

// Once returns a function that calls f, which reads something that does not change, until f succeeds, and
// returns that result from then on. Unlike [sync.OnceValues] it does not keep errors, because they may be
// temporary: a process that has run out of descriptors may close some. It is safe for concurrent use.
func Once[T any](f func() (T, error)) func() (T, error) {
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
