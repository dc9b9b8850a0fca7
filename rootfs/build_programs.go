package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/jail/zygote"
	"gaol/rootfs/programs"
)

// jailPrograms lists gaol's own programs that every image has.
var jailPrograms = []struct {
	name, path string
	mode       fs.FileMode
}{
	// It applies the seccomp filter to a process of a jail. It may be executed, not read: the kernel
	// keeps a process that executes such a file non-dumpable, whatever its user. Guests share one uid,
	// and could otherwise ptrace it, or open its memory and file descriptors below /proc, before its
	// filter is in place.
	{programs.Enter, enter.Path, 0o711},
	{programs.Zygote, zygote.Path, 0o644},       // makes Node a zygote
	{programs.Command, hostcommand.Path, 0o755}, // by which guests call commands of the host
	{programs.Reaper, enter.Reaper, 0o755},
}

func (b *build) addJailPrograms(ctx context.Context) error {
	for _, p := range jailPrograms {
		if err := b.addProgram(ctx, p.name, p.path, p.mode); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// addProgram adds one of gaol's own programs, which is prebuilt or made now.
func (b *build) addProgram(ctx context.Context, name, path string, mode fs.FileMode) error {
	f, err := b.store.in.programs.Open(ctx, name, b.temp.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.tree.WriteFile(path, mode, f)
}

// errOldLibc is the error for a C library that is older than that of the machine that built gaol.
var errOldLibc = errors.New("the C library of this machine's distribution is older than that of the machine that built gaol: " +
	"build gaol on the same distribution, or on an older one")

// checkZygote checks that Node can load a prebuilt zygote with the image's C library. A zygote
// compiled on this host fits.
func (b *build) checkZygote(context.Context) error {
	if b.store.in.programs.Prebuilt == nil {
		return nil
	}
	fits, err := canLoadZygote(b.tree)
	if err == nil && !fits {
		err = fmt.Errorf("%s: %w", programs.Zygote, errOldLibc)
	}
	return err
}

// applets lists the tools of busybox that become commands in an image. The others
// administer a machine, run servers or need privileges that no guest has: "mount: not
// found" is clearer than a mount that fails.
var applets = strings.Fields(`
	[ ar arch ascii ash awk base64 basename bc bunzip2 bzcat bzip2 cal cat chgrp chmod chown clear cmp
	comm cp cpio crc32 cut date dc dd df diff dirname dos2unix du echo ed egrep env expand expr factor
	fallocate false fgrep find flock fold free fsync fuser getopt grep groups gunzip gzip head hexdump
	hostid hostname id install ipcalc kill killall less link ln logname ls lsof lzcat lzma lzop
	md5sum mkdir mkfifo mktemp more mv nc nice nl nohup nologin nproc nslookup od paste patch
	pgrep pidof pkill printenv printf ps pstree pwd pwdx readlink realpath reset rev rm rmdir
	run-parts sed seq setsid sh sha1sum sha256sum sha3sum sha512sum shred shuf sleep sort split stat
	strings stty sum sync tac tail tar taskset tee test time timeout top touch tr tree true truncate ts
	tsort tty ttysize uname uncompress unexpand uniq unix2dos unlink unlzma unxz unzip uptime usleep
	uudecode uuencode vi watch wc wget which who whoami xargs xxd xz xzcat yes zcat`)

// addBusybox adds busybox, and a link for each applet that it has and no package provides.
func (b *build) addBusybox(ctx context.Context) error {
	if err := b.addProgram(ctx, programs.Busybox, "/usr/bin/busybox", 0o755); err != nil {
		return err
	}
	list, err := runNew(ctx, b.tree.HostPath("/usr/bin/busybox"), "--list")
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	offered := strings.Fields(string(list))
	for _, name := range []string{"sh", "env"} { // a shell, and the interpreter of npm's script
		if !slices.Contains(offered, name) {
			return fmt.Errorf("busybox lacks %s", name)
		}
	}
	for _, name := range applets {
		if p := "/usr/bin/" + name; slices.Contains(offered, name) && !b.tree.Has(p) {
			if err := b.tree.Symlink(p, "busybox"); err != nil {
				return err
			}
		}
	}
	return nil
}

// runNew returns the output of a program that this process has just written. A child of another
// goroutine shares the open file between its fork and its exec, and until then the
// kernel does not execute it: see go.dev/issue/22315.
func runNew(ctx context.Context, program string, args ...string) ([]byte, error) {
	for delay := time.Millisecond; ; delay *= 2 {
		out, err := exec.CommandContext(ctx, program, args...).Output()
		if !errors.Is(err, syscall.ETXTBSY) || delay > time.Second {
			return out, err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
