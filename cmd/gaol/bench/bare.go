package bench

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gaol/rootfs"
	"gaol/rootfs/sharedlib"
)

// bareNode starts the image's Node on the host, without any jail.
type bareNode struct {
	dir  string   // the working directory, which has the programs
	args []string // the command line without the program
}

// newBareNode writes the programs into dir, which must outlive the bareNode.
func newBareNode(dir string, image *rootfs.Image) (*bareNode, error) {
	if image.Imported != nil { // its programs and links are not trusted
		return nil, fmt.Errorf("image %s is imported, and its Node must not run outside of jails: %w", image.ID, rootfs.ErrUnsupported)
	}
	if err := os.CopyFS(dir, programs); err != nil {
		return nil, err
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
	return &bareNode{dir, []string{
		filepath.Join(root, sharedlib.Loader(program)), "--library-path", strings.Join(libraries, ":"), node,
	}}, nil
}

func (n *bareNode) command(ctx context.Context, p program) *exec.Cmd {
	args := slices.Concat(n.args[1:], []string{filepath.Join(n.dir, p.file())}, p.args())
	c := exec.CommandContext(ctx, n.args[0], args...)
	c.Dir = n.dir
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}
	return c
}

// output runs a program and returns what it printed.
func (n *bareNode) output(ctx context.Context, p program) ([]byte, error) {
	c := n.command(ctx, p)
	var stdout, stderr bytes.Buffer // not files, so that pipes capture the output, as a jail's
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("bare node: %w: %.300s", err, &stderr)
	}
	return stdout.Bytes(), nil
}
