package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// LimitError says that a field of Limits, or one like it, is out of bounds.
type LimitError struct {
	Limit              string // the field's name
	Value, Least, Most float64
}

// byteLimits are the fields that are bytes.
var byteLimits = []string{"Memory", "Disk", "Output", "Value", "Heap", "MaxOutput"}

// Error names the field and its bounds, bytes in binary units.
func (e *LimitError) Error() string {
	if e.Limit == "CPUTime" { // which has no upper bound
		return fmt.Sprintf("limit CPUTime: %v is negative", time.Duration(e.Value))
	}
	text := func(f float64) string {
		if slices.Contains(byteLimits, e.Limit) {
			return bytesText(int64(f))
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprintf("limit %s: %s is not between %s and %s", e.Limit, text(e.Value), text(e.Least), text(e.Most))
}

// bytesText is a number of bytes in the largest unit that it is a multiple of.
func bytesText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	at := 0
	for n != 0 && n%1024 == 0 && at < len(units)-1 {
		n /= 1024
		at++
	}
	return strconv.FormatInt(n, 10) + " " + units[at]
}
