package kernel

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// SlowVariable is the environment variable with the factor of [Timeout].
const SlowVariable = "GAOL_SLOW"

// maxSlow bounds the factor: with it, a program may take more than an hour to start.
const maxSlow = 200

// Slow returns the factor of [Timeout], or an error if the variable is not valid.
var Slow = sync.OnceValues(func() (float64, error) { return parseSlow(os.Getenv(SlowVariable)) })

func parseSlow(text string) (float64, error) {
	if text == "" {
		return 1, nil
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || !(factor >= 1 && factor <= maxSlow) {
		return 1, fmt.Errorf("%s=%q is not a number between 1 and %d", SlowVariable, text, maxSlow)
	}
	return factor, nil
}

// Timeout returns how long to wait for something that takes at most d on a busy machine: SlowVariable times that on an
// emulated one, where programs start 10 to 20 times as slowly. It applies to starts, not to limits of runs.
func Timeout(d time.Duration) time.Duration {
	factor, _ := Slow() // 1 after an error, which `gaol doctor` reports
	return time.Duration(float64(d) * factor)
}
