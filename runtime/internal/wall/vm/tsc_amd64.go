package vm

import (
	"sync"
	"time"
)

// readTSC reads the processor's time stamp counter.
func readTSC() uint64

// tscFrequency measures the frequency of the time stamp counter in kHz. Emulated machines have the same one: their kernels cannot
// measure it on a busy host, and their clocks would be wrong.
var tscFrequency = sync.OnceValues(func() (uint64, error) {
	const measure = 20 * time.Millisecond // an error of a microsecond is one of 0.005 %
	began, first := time.Now(), readTSC()
	time.Sleep(measure)
	ticks, passed := readTSC()-first, time.Since(began)
	return ticks * 1e6 / uint64(passed), nil //nolint:gosec // it is positive
})
