package bench

import (
	"bytes"
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gaol/rootfs"
	"gaol/rootfs/programs"
	"gaol/runtime"
)

//go:embed hello.mjs
var helloCode string

// Hello is a small program that prints a line and returns a value.
var Hello = Program{Name: "hello", Code: helloCode, Stdout: "hello world\n", Value: `{"answer":42}`}

// Program runs on bare Node and in jails, from the same source and with the same arguments.
type Program struct {
	Name, Code string
	Args       []string
	Stdout     string // its expected output
	Value      string // the JSON that it must return; empty: nothing
}

// File returns the name of the program's file.
func (p Program) File() string { return p.Name + ".mjs" }

// Run runs p in rt, where it must succeed. OnStdout may be nil.
func (p Program) Run(ctx context.Context, rt *runtime.NodeRuntime, onStdout func([]byte)) (*runtime.Result, error) {
	res, err := rt.Run(ctx, p.Code, runtime.RunOptions{Name: p.File(), Args: p.Args, OnStdout: onStdout})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s ended with exit code %d and cause %q: %.300s", p.File(), res.ExitCode, res.Cause, res.Stderr)
	}
	return res, err
}

// check ensures that a program that failed early is not counted as a fast one.
func (p Program) check(stdout, value []byte) error {
	if string(stdout) != p.Stdout || string(value) != p.Value {
		return fmt.Errorf("%s printed %q and returned %q, want %q and %q", p.File(), stdout, value, p.Stdout, p.Value)
	}
	return nil
}

// Run runs p in rt and checks the result.
func Run(ctx context.Context, rt *runtime.NodeRuntime, p Program) error {
	res, err := p.Run(ctx, rt, nil)
	if err != nil {
		return err
	}
	return p.check(res.Stdout, res.Value)
}

// RunOn runs p once: on bare Node, or in the side's runtime.
func (m *Measurer) RunOn(ctx context.Context, all Runtimes, side Side, p Program) error {
	if side != Bare {
		return Run(ctx, all[side], p)
	}
	stdout, err := m.Bare.Output(ctx, p)
	if err != nil {
		return err
	}
	return p.check(stdout, []byte(p.Value)) // no value leaves bare Node
}

// BareNode starts the image's Node on the host, without any jail.
type BareNode struct {
	dir  string   // the working directory, with the programs
	args []string // the command line without the program
}

// newBareNode returns the Node of an image. The programs' files are written into dir, which must outlive it.
func newBareNode(dir string, image *rootfs.Image) (*BareNode, error) {
	if image.Imported != nil { // its programs and links are not trusted
		return nil, fmt.Errorf("image %s is imported, and its Node must not run outside of jails: %w", image.ID, rootfs.ErrUnsupported)
	}
	root := image.Root()
	node := filepath.Join(root, "usr/local/bin/node")
	program, err := elf.Open(node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", node, err)
	}
	defer program.Close()
	// Debian's folders, such as /usr/lib/x86_64-linux-gnu.
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	return &BareNode{dir, []string{
		filepath.Join(root, programs.Loader(program)), "--library-path", strings.Join(libraries, ":"), node,
	}}, nil
}

// Command returns the command that runs a program. The first one also writes its file.
func (n *BareNode) Command(ctx context.Context, p Program) (*exec.Cmd, error) {
	file := filepath.Join(n.dir, p.File())
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(file, []byte(p.Code), 0o644); err != nil {
			return nil, err
		}
	}
	args := slices.Concat(n.args[1:], []string{file}, p.Args)
	c := exec.CommandContext(ctx, n.args[0], args...)
	c.Dir = n.dir
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}
	return c, nil
}

// Output runs a program and returns its standard output.
func (n *BareNode) Output(ctx context.Context, p Program) ([]byte, error) {
	c, err := n.Command(ctx, p)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer // not files, so that pipes capture the output, as a jail's
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("bare node: %w: %.300s", err, &stderr)
	}
	return stdout.Bytes(), nil
}
