package bench

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gaol/rootfs"
)

// The program of every sample, and what it must print.
const (
	program = "console.log('hello')\n"
	output  = "hello\n"
)

// bareNode starts the image's Node on the host, without any jail.
type bareNode struct{ args []string }

// newBareNode writes the program into dir, which must outlive the bareNode.
func newBareNode(dir string, image *rootfs.Image) (*bareNode, error) {
	file := filepath.Join(dir, "file.mjs")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		return nil, err
	}
	root := image.Root()
	node := filepath.Join(root, "usr/local/bin/node")
	loader, err := interpreter(node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", node, err)
	}
	// Debian's folders, such as /usr/lib/x86_64-linux-gnu.
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	return &bareNode{[]string{
		filepath.Join(root, loader), "--library-path", strings.Join(libraries, ":"), node, file,
	}}, nil
}

// interpreter is the dynamic loader that a program asks for.
func interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		path := make([]byte, p.Filesz)
		if _, err := p.ReadAt(path, 0); err != nil {
			return "", err
		}
		return string(bytes.TrimRight(path, "\x00")), nil
	}
	return "", errors.New("is linked statically")
}

// run starts Node and waits for its end.
func (n *bareNode) run(ctx context.Context) error {
	c := exec.CommandContext(ctx, n.args[0], n.args[1:]...)
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}
	var stdout, stderr bytes.Buffer // not files: captured by pipes, as a jail's are
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("bare node: %w: %s", err, &stderr)
	}
	return checkOutput(stdout.Bytes())
}

// checkOutput keeps a program that failed early from counting as a fast one.
func checkOutput(got []byte) error {
	if string(got) != output {
		return fmt.Errorf("the program printed %q, want %q", got, output)
	}
	return nil
}
