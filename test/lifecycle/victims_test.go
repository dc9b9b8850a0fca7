package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/runtime"
	"gaol/test/harness"
)

// victims are the actions of a host when it is killed. Each function does it once. The names are
// in victimNames.
var victims = map[string][]func() error{
	"create": {createAndClose, createAndClose, createAndClose},
	"run":    {runBy(runtime.LauncherZygote), runBy(runtime.LauncherExec), runBy(runtime.LauncherExec)},
	"pool":   {keepPool(runtime.LauncherZygote), keepPool(runtime.LauncherExec)},
	"zygote": {startZygote},
	"last":   {runBy(runtime.LauncherZygote)}, // starting a zygote removes the cgroups of dead hosts' zygotes
}

var victimNames = []string{"create", "run", "pool", "zygote"}

// runVictimHost repeats the action that the environment names until it is killed. It prints a line when it
// begins and one when it has done everything once.
func runVictimHost() {
	if err := mountState(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("up")
	name := os.Getenv(victimVar)
	var first, all sync.WaitGroup
	for _, do := range victims[name] {
		first.Add(1)
		all.Go(func() {
			for n := 0; n == 0 || name != "last"; n++ {
				if err := do(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				if n == 0 {
					first.Done()
				}
			}
		})
	}
	first.Wait()
	if name == "last" {
		if err := runtime.CloseIdle(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Println("round")
	all.Wait()
}

// mountState replaces this process's state folder by stateVar.
//
// Precondition: the process is in a separate mount namespace.
func mountState() error {
	if err := os.MkdirAll(jail.DefaultStateDir, 0o711); err != nil {
		return err
	}
	return unix.Mount(os.Getenv(stateVar), jail.DefaultStateDir, "", unix.MS_BIND, "")
}

// victimOptions include a mount, whose ids are mapped by a helper process, and a tree on disk for one launcher.
func victimOptions(l runtime.Launcher) runtime.Options {
	o := harness.Options(runtime.Options{Mounts: []runtime.Mount{{Source: "/usr/share", Target: "/data"}}})
	o.Launcher = l
	if l == runtime.LauncherExec {
		o.Limits = onDisk
	}
	return o
}

func createAndClose() error {
	rt, err := runtime.Create(context.Background(), victimOptions(runtime.LauncherExec))
	if err != nil {
		return err
	}
	return rt.Close()
}

// runBy closes a runtime while a run is in progress.
func runBy(l runtime.Launcher) func() error {
	return func() error {
		rt, err := runtime.Create(context.Background(), victimOptions(l))
		if err != nil {
			return err
		}
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			_, _ = rt.Run(context.Background(), `require('node:child_process').spawn('sleep', ['100'], { detached: true }); for (;;);`,
				runtime.RunOptions{Timeout: 50 * time.Millisecond})
		}()
		res, err := rt.Run(context.Background(), `__return(1)`, runtime.RunOptions{})
		if err == nil && string(res.Value) != "1" {
			err = fmt.Errorf("a run: %+v", res)
		}
		err = errors.Join(err, rt.Close())
		<-busy
		return err
	}
}

func keepPool(l runtime.Launcher) func() error {
	return func() error {
		pool, err := runtime.NewPool(victimOptions(l), runtime.PoolOptions{Size: 2, Park: l == runtime.LauncherZygote && slices.Contains(harness.Launchers, l)})
		if err != nil {
			return err
		}
		rt, err := pool.Get(context.Background())
		if err == nil {
			_, err = rt.Run(context.Background(), `__return(1)`, runtime.RunOptions{})
			err = errors.Join(err, rt.Close())
		}
		return errors.Join(err, pool.Close())
	}
}

// startZygote also closes the zygote, so that the next call starts another.
func startZygote() error {
	return errors.Join(runBy(runtime.LauncherZygote)(), runtime.CloseIdle())
}
