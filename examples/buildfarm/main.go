package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"sync"

	"gaol/rootfs"
	"gaol/runtime"
)

//go:embed all:project
var project embed.FS

// change is a job of the farm: files that are replaced in the project.
type change struct {
	name  string
	files map[string]string
}

var changes = []change{
	{"add a page", map[string]string{"pages/hello_world.md": "Hello again\n"}},
	{"empty a page", map[string]string{"pages/about.md": ""}},
	{"break the build", map[string]string{"build.mjs": "import 'no-such-package'\n"}},
}

func main() {
	if err := run(context.Background(), os.Stdout, runtime.Options{}); err != nil {
		log.Fatal(err)
	}
}

// run builds all changes and prints their outcomes in order.
func run(ctx context.Context, out io.Writer, o runtime.Options) (err error) {
	o.Limits.Memory = 512 << 20
	snapshot, err := install(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeSnapshot(o.Store, snapshot)) }()

	o.Snapshot = snapshot
	outcomes := make([]outcome, len(changes))
	var builds sync.WaitGroup
	for i, c := range changes {
		builds.Go(func() { outcomes[i] = build(ctx, c, o) })
	}
	builds.Wait()
	for i, c := range changes {
		if outcomes[i].err != nil {
			return outcomes[i].err
		}
		fmt.Fprintf(out, "%s: %s\n", c.name, outcomes[i].text)
	}
	return nil
}

// install installs the project's packages in a sandbox of its own and returns the id of a
// snapshot. Install scripts are foreign code too: they run in that sandbox.
func install(ctx context.Context, o runtime.Options) (_ string, err error) {
	root, err := fs.Sub(project, "project")
	if err != nil {
		return "", err
	}
	o.Folders = map[string]fs.FS{"/workspace": root}
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	args := []string{"install", "--offline", "--install-links", "--no-audit", "--no-fund", "./packages/slug"}
	res, err := rt.Command(ctx, "npm", args, runtime.RunOptions{})
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 {
		return "", fmt.Errorf("npm install: exit code %d, cause %q: %s", res.ExitCode, res.Cause, res.Stderr)
	}
	s, err := rt.Snapshot(ctx, runtime.SnapshotOptions{})
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// removeSnapshot removes a snapshot from the store. Without it, the next farm would start with
// the installed packages at once.
func removeSnapshot(dir, id string) error {
	store, err := rootfs.Open(dir)
	if err != nil {
		return err
	}
	snapshots, err := store.Snapshots()
	if err != nil {
		return err
	}
	_, err = snapshots.Remove(id)
	return err
}
