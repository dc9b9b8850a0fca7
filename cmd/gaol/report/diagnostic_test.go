package report

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"gaol/rootfs"
)

func TestPermissionAdvice(t *testing.T) {
	if root, user := permissionAdvice(0), permissionAdvice(1000); strings.Contains(root, "sudo") || !strings.Contains(user, "sudo") {
		t.Errorf("root: %q, others: %q", root, user)
	}
}

func TestPrint(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("gaol: create: a\n\tb\x1b[31m"), "gaol: create: a b\\x1b[31m\n"},
		{Advise(syscall.ENOSPC, "own advice"), "gaol: no space left on device; own advice\n"},
		{NewOutputError("standard output", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}), "gaol: write standard output: no space left on device; send it to where there is room for it\n"},
		{fmt.Errorf("x: %w", rootfs.ErrNotFound), "gaol: x: no such image; `gaol image ls` lists the images, `gaol image build` makes one\n"},
	} {
		var out bytes.Buffer
		if Print(&out, tc.err); out.String() != tc.want {
			t.Errorf("%q, want %q", out.String(), tc.want)
		}
	}
}
