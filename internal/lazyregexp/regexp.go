package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that compiles expr when it is called first. An invalid expr panics then, and
// in tests at once.
func New(expr string) func() *regexp.Regexp {
	get := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") {
		get()
	}
	return get
}
