package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gaol/internal/lazyregexp"
	"gaol/runtime/internal/hostcall"
)

// completion is the dotted path at the end of a line of code, as the guest gets it: a.b.c is
// the path a, b and the prefix c.
type completion struct {
	Path   []string `json:"path"`
	Prefix string   `json:"prefix"`
}

const (
	completeTimeout = time.Second
	maxCompleteLine = 64 << 10  // bytes of a line
	maxNames        = 512 << 10 // bytes of the answer
	deepestPath     = 32
	mostNames       = 1000
)

// Complete returns the names that can complete the last name of a line of code: variables
// and, after a dot, properties, at most 1,000 in alphabetical order. prefix is the end of the
// line that all of them begin with. Complete calls no code of the guest: it finds no names
// behind a getter or a call. The names come from the guest.
//
// It waits for its turn like a cell. If the context is busy with the work of an earlier cell,
// Complete returns no names after a second, and does not interrupt that work. The error wraps
// [ErrContextEnded] if the context has ended, and is the cause of ctx if ctx ends first.
func (c *Context) Complete(ctx context.Context, line string) (prefix string, names []string, err error) {
	defer wrap(&err, "complete")
	asked, ok := parseCompletion(line)
	if !ok {
		return "", nil, nil
	}
	if err := c.acquireTurn(ctx); err != nil {
		return "", nil, err
	}
	defer c.leaveTurn()
	cl := c.newCell(maxNames, nil)
	cause, err := c.exchange(ctx, cl, map[string]completion{"complete": asked}, completeTimeout)
	switch {
	case err != nil:
		return "", nil, err
	case cause == CauseTimeout:
		return asked.Prefix, nil, nil
	case cause != CauseNone:
		return "", nil, context.Cause(ctx)
	case !isClosed(cl.done): // the process has ended
		<-c.Done()
		return "", nil, c.err
	}
	return asked.Prefix, cl.names(asked.Prefix), nil
}

// names returns the valid names of an answer.
func (cl *cell) names(prefix string) []string {
	var all []string
	if json.Unmarshal(cl.value, &all) != nil || len(all) > mostNames {
		return nil
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return !strings.HasPrefix(name, prefix) || !hostcall.Identifier().MatchString(name)
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// lastPath matches the dotted path at the end of a line, and the character before it.
var lastPath = lazyregexp.New(`(?:^|\.\.\.|[^\p{L}\p{Nd}_$.)\]}'"` + "`" + `?])((?:[\p{L}_$][\p{L}\p{Nd}_$]*\s*\??\.\s*)*)([\p{L}_$][\p{L}\p{Nd}_$]*)?$`)

func parseCompletion(line string) (c completion, ok bool) {
	if len(line) > maxCompleteLine {
		return c, false
	}
	found := lastPath().FindStringSubmatch(line)
	if found == nil {
		return c, false
	}
	c = completion{Path: []string{}, Prefix: found[2]}
	for _, name := range strings.SplitAfter(found[1], ".") {
		if name = strings.TrimSpace(strings.TrimRight(name, "?. \t\n")); name != "" {
			c.Path = append(c.Path, name)
		}
	}
	return c, len(c.Path) <= deepestPath
}
