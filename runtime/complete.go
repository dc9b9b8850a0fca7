package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// completeHead is a question for names as the guest gets it.
type completeHead struct {
	Complete completion `json:"complete"`
}

// completion is what a line of code ends in: a.b.c is the path a, b and the prefix c.
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

// Complete finds the names that may stand in place of the last one of a line of code:
// variables and, behind a dot, properties, at most 1,000 in alphabetical order. prefix is
// the end of the line that all of them begin with. Nothing of the guest's is called for
// it: there are no names behind a getter or a call. The names are the guest's own.
//
// It takes a turn as a cell does. Where the context is busy with what a cell has left, there
// are no names after a second, and what is busy goes on. The error wraps [ErrContextEnded] if the context has
// ended, and is the cause of ctx if that ends first.
func (c *Context) Complete(ctx context.Context, line string) (prefix string, names []string, err error) {
	asked, ok := parseCompletion(line)
	if !ok {
		return "", nil, nil
	}
	if names, err = c.complete(ctx, asked); err != nil {
		return "", nil, fmt.Errorf("gaol: complete: %w", err)
	}
	return asked.Prefix, names, nil
}

func (c *Context) complete(ctx context.Context, asked completion) ([]string, error) {
	if err := c.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer c.leaveTurn()
	cl := &cell{number: c.nextNumber(), limit: maxNames, done: make(chan struct{})}
	cause, err := c.exchange(ctx, cl, completeHead{asked}, completeTimeout)
	switch {
	case err != nil || cause == CauseTimeout:
		return nil, err
	case cause != CauseNone:
		return nil, context.Cause(ctx)
	}
	select {
	case <-cl.done:
	default: // the process has ended
		<-c.done
		return nil, c.err
	}
	return cl.names(asked.Prefix), nil
}

// names are those of an answer that are what was asked for.
func (cl *cell) names(prefix string) []string {
	var all []string
	if json.Unmarshal(cl.value, &all) != nil || len(all) > mostNames {
		return nil
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, prefix) || !identifier.MatchString(name) })
	slices.Sort(all)
	return slices.Compact(all)
}

// lastPath is a dotted path at a line's end, and what is before it.
var lastPath = regexp.MustCompile(`(?:^|\.\.\.|[^\p{L}\p{Nd}_$.)\]}'"` + "`" + `?])((?:[\p{L}_$][\p{L}\p{Nd}_$]*\s*\??\.\s*)*)([\p{L}_$][\p{L}\p{Nd}_$]*)?$`)

func parseCompletion(line string) (c completion, ok bool) {
	if len(line) > maxCompleteLine {
		return c, false
	}
	found := lastPath.FindStringSubmatch(line)
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
