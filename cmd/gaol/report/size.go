package report

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"", 1}}

var errSize = errors.New("want a size like 64k, 256m or 1g")

// ParseSize parses a number of bytes: digits, then nothing or k, m or g for a
// power of 1024. Zero is an error.
//
// github.com/docker/go-units is not used. It computes in float64, so that it accepts "1.5m", "0x1p4"
// and "1e3", wraps around for 8589934592g, and prints four digits of 1000000001. A limit must be
// exact, or an error.
func ParseSize(text string) (int64, error) {
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(strings.ToLower(text), u.suffix)
		if !found {
			continue
		}
		// ParseUint, unlike ParseInt, rejects a sign.
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n == 0 || n > uint64(math.MaxInt64/u.bytes) {
			return 0, errSize
		}
		return int64(n) * u.bytes, nil
	}
	return 0, errSize
}

// FormatSize returns the shortest text that ParseSize reads as n, or "" for 0.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return ""
}
