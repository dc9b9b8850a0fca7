package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"

	"gaol/jail/landlock"
	"gaol/policy"
	"gaol/runtime"
)

// strictRuns has runs under the strictest permissions take turns with others of the
// same launcher.
func (m *measurer) strictRuns(ctx context.Context) (failed error) {
	strict := map[Side]*runtime.NodeRuntime{}
	defer func() { failed = errors.Join(failed, closeAll(strict)) }()
	for _, side := range m.jailed() {
		o := m.create(side)
		o.Permissions = policy.Strict()
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		strict[side] = rt
		if err := run(ctx, rt, hello); err != nil { // unmeasured: the first is slower
			return err
		}
	}
	with, without := Samples{}, Samples{}
	for range m.options.Samples {
		for _, side := range m.jailed() {
			err := without.of(side).time(func() error { return run(ctx, m.lasting[side], hello) })
			if err == nil {
				err = with.of(side).time(func() error { return run(ctx, strict[side], hello) })
			}
			if err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	m.add(againstOwn(strictID, "warm run, all permissions denied, p50", "ms", with.percentiles(50), without.percentiles(50), "permissions by default"))
	return nil
}

func closeAll(list map[Side]*runtime.NodeRuntime) (failed error) {
	for _, rt := range list {
		failed = errors.Join(failed, rt.Close())
	}
	return failed
}

// restrictedFiles has the file-heavy program write below one folder only, as bare node
// does that has a ruleset put on.
func (m *measurer) restrictedFiles(ctx context.Context) (failed error) {
	ruleset, err := writeOnlyBelow(m.dir)
	if err != nil {
		return err
	}
	defer ruleset.Close()
	ample := map[Side]*runtime.NodeRuntime{}
	defer func() { failed = errors.Join(failed, closeAll(ample)) }()
	for _, side := range m.jailed() {
		o := ampleOptions(m.create(side))
		o.Permissions = policy.Workspace(workspace(o))
		if ample[side], err = runtime.Create(ctx, o); err != nil {
			delete(ample, side)
			return err
		}
	}
	w, name := m.scaled(workloadOf(filesID))
	v, err := m.workload(ctx, w.program, ample, func(ctx context.Context, p program) error { return m.bare.under(ctx, ruleset, p) })
	if err != nil {
		return err
	}
	m.add(againstBare(restrictedFilesID, name+", writing in one folder only, against bare node under such a ruleset", "ms", v))
	return nil
}

func workspace(o runtime.Options) string {
	if o.Cwd != "" {
		return o.Cwd
	}
	return "/workspace"
}

// writeOnlyBelow is a ruleset like that of policy.Workspace.
func writeOnlyBelow(dir string) (*os.File, error) {
	root, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	const reads = landlock.ReadFile | landlock.ReadDir | landlock.Execute
	const writes = landlock.WriteFile | landlock.MakeReg | landlock.MakeDir | landlock.RemoveFile | landlock.RemoveDir | landlock.Truncate | landlock.Refer
	r := landlock.Ruleset{Handled: reads | writes, Rules: []landlock.Rule{
		{Path: "/", Tree: true, Access: reads},
		{Path: dir, Tree: true, Access: writes},
		{Path: "/dev/null", Access: landlock.WriteFile},
	}}
	return r.Make(root)
}

// under is run in a domain of its own.
func (n *bareNode) under(ctx context.Context, ruleset *os.File, p program) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends, and the domain with it
		err := landlock.Restrict(ruleset, 0)
		if err == nil {
			err = n.run(ctx, p)
		}
		done <- err
	}()
	return <-done
}
