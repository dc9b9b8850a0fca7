package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// outcome is what a build printed or made; err is a failure of gaol itself.
type outcome struct {
	text string
	err  error
}

// build applies a change to a fresh copy of the snapshot, which costs no copying, and runs the
// project's build and tests there.
func build(ctx context.Context, c change, o runtime.Options) (done outcome) {
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return outcome{err: err}
	}
	defer func() { done.err = errors.Join(done.err, rt.Close()) }()
	for name, text := range c.files {
		if err := rt.FS().WriteFile(path.Join("/workspace", name), []byte(text), hostfs.WriteOptions{}); err != nil {
			return outcome{err: err}
		}
	}
	for _, step := range [][]string{{"run", "build"}, {"test"}} {
		res, err := rt.Command(ctx, "npm", append(step, "--silent"), runtime.RunOptions{Timeout: 5 * time.Minute})
		if err != nil {
			return outcome{err: err}
		}
		if res.ExitCode != 0 {
			return outcome{text: fmt.Sprintf("npm %s: %s", strings.Join(step, " "), reason(res))}
		}
	}
	return artifacts(rt)
}

// reason is the line that says why a step failed, or the step's last line.
func reason(res *runtime.Result) string {
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)+string(res.Stderr)), "\n")
	for _, l := range lines {
		if strings.Contains(l, "Error: ") || strings.Contains(l, "Error [") {
			return strings.TrimSpace(l)
		}
	}
	return lines[len(lines)-1]
}

// artifacts lists the files that the build made. A real farm would copy them with FS().Tar.
func artifacts(rt *runtime.NodeRuntime) outcome {
	names, err := fs.Glob(rt.FS().View("/workspace/dist"), "*.html")
	if err != nil {
		return outcome{err: err}
	}
	for i, name := range names {
		page, err := rt.FS().ReadFile(path.Join("/workspace/dist", name))
		if err != nil {
			return outcome{err: err}
		}
		names[i] = fmt.Sprintf("%s (%d bytes)", name, len(page))
	}
	return outcome{text: strings.Join(names, ", ")}
}
