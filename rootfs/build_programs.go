package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/jail/zygote"
	"gaol/rootfs/layer"
	"gaol/rootfs/programs"
)

// addProgram adds one of gaol's own programs, which is prebuilt or made now.
func (b *build) addProgram(ctx context.Context, name, path string, mode fs.FileMode) error {
	f, err := b.store.in.programs.Open(ctx, name, b.temp.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.tree.WriteFile(path, mode, f)
}

// addEnter adds the program that applies the seccomp filter to a process of a jail.
//
// It may be executed, not read: the kernel keeps a process that executes such a
// file non-dumpable, whatever its user. Guests share one uid, and could
// otherwise ptrace it, or open its memory and file descriptors below /proc,
// before its filter is in place.
func (b *build) addEnter(ctx context.Context) error {
	return b.addProgram(ctx, programs.Enter, enter.Path, 0o711)
}

// addZygote adds the shared object that makes Node a zygote.
func (b *build) addZygote(ctx context.Context) error {
	return b.addProgram(ctx, programs.Zygote, zygote.Path, 0o644)
}

// addCommand adds the program by which guests call commands of the host.
func (b *build) addCommand(ctx context.Context) error {
	return b.addProgram(ctx, programs.Command, hostcommand.Path, 0o755)
}

func (b *build) addReaper(ctx context.Context) error {
	return b.addProgram(ctx, programs.Reaper, enter.Reaper, 0o755)
}

// errOldLibc is the error for a C library that is older than that of the machine that built gaol.
var errOldLibc = errors.New("the C library of this machine's distribution is older than that of the machine that built gaol: " +
	"build gaol on the same distribution, or on an older one")

// checkZygote checks that Node can load a prebuilt zygote with the image's C library. One that was
// compiled on this host fits.
func (b *build) checkZygote(context.Context) (err error) {
	if b.store.in.programs.Prebuilt == nil {
		return nil
	}
	t, err := layer.Open(b.root(), layer.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	fits, err := canLoadZygote(t)
	if err == nil && !fits {
		err = fmt.Errorf("%s: %w", programs.Zygote, errOldLibc)
	}
	return err
}
