package size

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	bytes  int64
}{{"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"", 1}}

var errSyntax = errors.New("want a size like 64k, 256m or 1g")

// Parse returns the number of bytes that text says. Zero is an error.
func Parse(text string) (int64, error) {
	for _, u := range units {
		digits, found := strings.CutSuffix(strings.ToLower(text), u.suffix)
		if !found {
			continue
		}
		// ParseUint, unlike ParseInt, rejects a sign.
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n == 0 || n > uint64(math.MaxInt64/u.bytes) {
			return 0, errSyntax
		}
		return int64(n) * u.bytes, nil
	}
	return 0, errSyntax
}

// Format returns the shortest text that Parse reads as n, or "" for 0.
func Format(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return ""
}

// Phrase returns n as part of a sentence: "16m" or "3 bytes".
func Phrase(n int64) string {
	if n%1024 != 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return Format(n)
}
