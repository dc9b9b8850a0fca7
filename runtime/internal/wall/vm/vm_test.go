package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gaol/jail/cgroup"
	"gaol/runtime/internal/sandbox"
)

// A machine lacks a network device, can write no disk, and is emulated only if it must be.
func TestArguments(t *testing.T) {
	spec := &sandbox.Spec{Disk: 64 << 20, Limits: sandbox.Limits{Memory: 128 << 20, CPUs: 0.5}}
	for emulated, want := range map[bool][]string{
		true:  {"-accel tcg,tb-size=96", "tsc_early_khz=", "GAOL_SLOW=20 ", "-m 448 ", "-smp 1 "},
		false: {"-accel kvm", "-cpu host", "GAOL_SLOW=1 "},
	} {
		list, err := arguments(spec, 2, emulated, map[bool]float64{true: 20, false: 1}[emulated])
		if err != nil {
			t.Skip(err)
		}
		all := strings.Join(list, " ")
		for _, text := range append(want, "-nodefaults", "-sandbox on,", "elevateprivileges=deny", "spawn=deny", "rdinit=/gaol", "-- agent boot") {
			if !strings.Contains(all, text) {
				t.Errorf("emulated %v: %s lacks %q", emulated, all, text)
			}
		}
		if strings.Contains(all, "net") || emulated != strings.Contains(all, "mitigations=off") {
			t.Errorf("emulated %v: %s", emulated, all)
		}
		for _, a := range list {
			if strings.HasPrefix(a, "if=none") && !strings.HasSuffix(a, ",readonly=on") {
				t.Error(a)
			}
		}
		if n := strings.Count(all, "virtio-blk-device"); n != 2 {
			t.Errorf("%d disks", n)
		}
	}
}

// QEMU's limits are the machine's and what QEMU needs itself.
func TestLimits(t *testing.T) {
	spec := &sandbox.Spec{Disk: 1<<20 + 1, Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.25}}
	want := cgroup.Limits{Memory: guestMemory + 66<<20 + hostMemory, CPUs: 1 + hostCPUs, Pids: hostPids}
	if got := limits(spec); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The initramfs contains the modules' archive, and gaol as another one.
func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 2, 3, 4, 5000} {
		content := bytes.Repeat([]byte("x"), size)
		err := errors.Join(os.WriteFile(dir+"/modules", []byte("1234"), 0o644), os.WriteFile(dir+"/gaol", content, 0o755))
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprint(dir, "/", size)
		err = writeInitramfs(out, dir+"/modules", dir+"/gaol")
		text, failed := os.ReadFile(out)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		rest, ok := bytes.CutPrefix(text, []byte("1234"))
		if !ok || len(text)%4 != 0 {
			t.Fatalf("%d bytes", len(text))
		}
		const headSize, nameSize = 110, len(agentPath) + 1
		if got := string(rest[:headSize+nameSize]); !strings.HasPrefix(got, "07070100000000000081ED") || !strings.Contains(got, fmt.Sprintf("%08X", size)) || !strings.HasSuffix(got, agentPath+"\x00") {
			t.Errorf("head %q", got)
		}
		at := headSize + nameSize
		at += len(padding(int64(at)))
		if got := rest[at : at+size]; !bytes.Equal(got, content) {
			t.Errorf("%q", got)
		}
		if !bytes.HasPrefix(rest[at+size+len(padding(int64(size))):], []byte("070701")) {
			t.Error("there is no trailer")
		}
	}
	if err := writeInitramfs(dir+"/out", dir+"/missing", dir+"/gaol"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A disk is made once, also by several processes, and what a failure leaves is no disk.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	image, mkfs := dir+"/image", dir+"/mkfs"
	script := func(text string) {
		if err := os.WriteFile(mkfs, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("echo partial >$3; echo why >&2; exit 1")
	if _, err := findDisk(t.Context(), mkfs, image); err == nil || !strings.Contains(err.Error(), "why") {
		t.Error(err)
	}
	script("echo x >>" + dir + "/calls; echo $4 >$3")
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			path, err := findDisk(t.Context(), mkfs, image)
			if text, failed := os.ReadFile(path); string(text) != image+"\n" || err != nil || failed != nil {
				t.Errorf("%q, %v, %v", text, err, failed)
			}
		})
	}
	work.Wait()
	if calls, err := os.ReadFile(dir + "/calls"); string(calls) != "x\n" || err != nil {
		t.Errorf("%q, %v", calls, err)
	}
	left, err := filepath.Glob(dir + "/image*")
	if want := []string{image + ".erofs", image + ".erofs.lock"}; !slices.Equal(left, want) || err != nil {
		t.Errorf("%q, %v", left, err)
	}
}

// Images have the same paths in all machines.
func TestImages(t *testing.T) {
	spec := &sandbox.Spec{Image: "/store/a", Warm: &sandbox.Warm{Image: "/store/b"}}
	if got := images(spec); !slices.Equal(got, []string{"/store/a", "/store/b"}) {
		t.Errorf("%q", got)
	}
	spec.Warm.Image = spec.Image
	if got := images(spec); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
