package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"gaol/policy"
	"gaol/runtime"
)

// jailed runs tests in gaol.
type jailed struct {
	folder   string // of the host
	launcher runtime.Launcher
	limits   runtime.Limits
}

const inside = "/node" // where the source tree is in a jail

func (j *jailed) options() runtime.Options {
	o := runtime.Options{Launcher: j.launcher, Limits: j.limits}
	o.Permissions.Network = policy.Loopback()
	// Tests write to folders beside them.
	o.Mounts = []runtime.Mount{{Source: j.folder, Target: inside, Access: runtime.CopyOnWrite}}
	return o
}

// run runs a test in a separate runtime.
func (j *jailed) run(ctx context.Context, t nodeTest, worker int) (o outcome, err error) {
	rt, err := runtime.Create(ctx, j.options())
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	file := path.Join(inside, "test", t.name)
	thread := fmt.Sprint(100 + worker) // another than plain Node's, which may leave folders that only it can remove
	r := runtime.RunOptions{Cwd: path.Dir(file), Timeout: patience, Env: map[string]string{"TEST_THREAD_ID": thread}}
	var res *runtime.Result
	if len(t.flags) > 0 {
		res, err = rt.Command(ctx, "node", append(append([]string{}, t.flags...), file), r)
	} else {
		r.Name = file // a test finds its file and those beside it
		if filepath.Ext(file) == ".js" {
			r.Format = runtime.FormatCommonJS
		}
		res, err = rt.Run(ctx, t.code, r)
	}
	if err != nil {
		return o, err
	}
	trouble := fmt.Sprintf("%s%s", res.Stderr, res.Cause)
	for _, d := range res.Denials {
		trouble += fmt.Sprintf("\n%+v", d)
	}
	return judge(res.ExitCode, string(res.Stdout), trouble), nil
}
