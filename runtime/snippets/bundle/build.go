package bundle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// A build bundles the files of one snippet.
type build struct {
	Options
	files        map[string]File   // by clean path
	languages    map[string]string // the extension of the language of each
	jsx, require bool              // the files may use them

	mu       sync.Mutex
	imported map[string]bool  // specifiers of packages in the last run
	entries  map[string]entry // the known packages
}

// result is what esbuild returns.
type result struct {
	code      string
	sourceMap []byte
	Errors    []api.Message
}

// placeholder replaces the folder of the set in paths while that is unknown. It is of the
// same length, so that columns do not change, and a snippet does not know it.
var placeholder = func() string {
	b := make([]byte, dirLength/2)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}()

// dirLength is the length of a set's Dir.
const dirLength = 32

// slots limits how many goroutines run esbuild for snippets. A goroutine keeps its slot
// after a timeout, until esbuild returns.
var slots = make(chan struct{}, max(2, goruntime.GOMAXPROCS(0)))

var errTimeout = errors.New("bundle: esbuild took too long")

// run runs esbuild once.
func (b *build) run(ctx context.Context) (result, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return result{}, fmt.Errorf("bundle: %w", ctx.Err())
	}
	b.imported = make(map[string]bool)
	r, err := rebuild(ctx, b.options(), b.Timeout, func() { <-slots })
	return newResult(r), err
}

// rebuild runs esbuild, and then calls done. After a timeout, that happens later.
func rebuild(ctx context.Context, o api.BuildOptions, timeout time.Duration, done func()) (api.BuildResult, error) {
	c, failure := api.Context(o)
	if failure != nil {
		done()
		return api.BuildResult{}, fmt.Errorf("bundle: %s", failure.Errors[0].Text)
	}
	results := make(chan api.BuildResult, 1)
	go func() {
		defer done()
		results <- c.Rebuild()
		c.Dispose()
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-results:
		return r, nil
	case <-timer.C:
		go c.Cancel() // waits for the build
		return api.BuildResult{}, errTimeout
	case <-ctx.Done():
		go c.Cancel()
		return api.BuildResult{}, fmt.Errorf("bundle: %w", ctx.Err())
	}
}

func newResult(r api.BuildResult) result {
	out := result{Errors: r.Errors}
	for _, f := range r.OutputFiles {
		if strings.HasSuffix(f.Path, ".map") {
			out.sourceMap = f.Contents
		} else {
			out.code = string(f.Contents)
		}
	}
	return out
}

// options are esbuild's options for a snippet.
func (b *build) options() api.BuildOptions {
	o := api.BuildOptions{
		EntryPoints:    []string{"/nonexistent/entry"}, // esbuild looks for it in the folder
		Plugins:        []api.Plugin{{Name: "snippet", Setup: b.setUp}},
		Bundle:         true,
		Format:         api.FormatESModule,
		Platform:       api.PlatformNode,
		Target:         api.ESNext,
		Supported:      map[string]bool{"decorators": false}, // V8 does not support them yet
		TsconfigRaw:    "{}",                                 // so that esbuild looks for none
		Charset:        api.CharsetUTF8,
		LegalComments:  api.LegalCommentsNone,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		LogLevel:       api.LogLevelSilent,
		LogOverride:    silenced,
		AbsWorkingDir:  "/",
		Outfile:        "/snippet.js",
	}
	if b.require {
		// ES modules have no require, and for require('./' + x), esbuild would search the host's
		// folders. It takes time to copy esbuild's own definitions.
		o.Define = map[string]string{"require": "globalThis.require"}
	}
	if b.jsx && b.Packages != nil && b.Packages.hasJSXRuntime() {
		o.JSX = api.JSXAutomatic
	}
	return o
}

// silenced are warnings, which this package ignores. For each, esbuild would count lines.
var silenced = map[string]api.LogLevel{
	"import-is-undefined":    api.LogLevelSilent,
	"duplicate-object-key":   api.LogLevelSilent,
	"duplicate-case":         api.LogLevelSilent,
	"duplicate-class-member": api.LogLevelSilent,
	"direct-eval":            api.LogLevelSilent,
}
